// The whole page. It shows what the server says and computes nothing: words, percentages and times
// come from the API as the terminal prints them.

const $ = (id) => document.getElementById(id);
const token = document.querySelector("meta[name=sureshot-token]").content;
const FILTERS = ["folder", "shortest", "longest", "since", "until"];
const photos = new Map(); // photos that were dropped, by the name in the address
let answer = null; // what is shown: { hits, next, query, … }
let chosen = -1; // place of the hit that keys go to
let film = null; // what plays: { hit, start, end, … }
let asking = null; // the search under way, which a newer one ends
let typed = 0; // when the last letter was typed

// --- asking the server ------------------------------------------------------------------------

async function ask(address, options = {}) {
  const headers = { ...options.headers, "X-Sureshot-Token": token };
  let reply;
  try {
    reply = await fetch(address, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; is `sureshot serve` still running?");
  }
  const values = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(values.error.message), { code: values.error.code });
  return values;
}

const send = (address, body, method = "POST") =>
  ask(address, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

function make(tag, { attributes = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

const fileOf = (path) => path.slice(path.lastIndexOf("/") + 1);
const folderOf = (path) => path.slice(0, path.lastIndexOf("/")) || "/";
const picture = (hit, at) => `api/thumbnail/${hit.id}?at=${at}&side=180`;

// --- the address: every search has one ----------------------------------------------------------

function wanted() {
  const asked = new URLSearchParams();
  if ($("query").value.trim()) asked.set("q", $("query").value.trim());
  for (const name of FILTERS) if ($(name).value.trim()) asked.set(name, $(name).value.trim());
  return asked;
}

function go(asked, replace = false) {
  const address = asked.size ? `?${asked}` : location.pathname;
  if (address !== (location.search || location.pathname)) {
    history[replace ? "replaceState" : "pushState"](null, "", address);
  }
  search();
}

function filtered(asked) {
  for (const name of FILTERS) {
    const value = new URLSearchParams(location.search).get(name);
    if (!value) continue;
    const number = Number(value.replace(",", ".")) * 60; // people give minutes, the server takes seconds
    asked.set(name, name === "shortest" || name === "longest" ? (number >= 0 ? number : value) : value);
  }
  return asked;
}

addEventListener("popstate", () => {
  fill();
  search();
});

function fill() {
  const asked = new URLSearchParams(location.search);
  $("query").value = asked.get("q") ?? "";
  for (const name of FILTERS) $(name).value = asked.get(name) ?? "";
  if (FILTERS.some((name) => asked.has(name))) $("filters").open = true;
}

// --- searching ----------------------------------------------------------------------------------

function request(cursor) {
  const asked = new URLSearchParams(location.search);
  const page = filtered(new URLSearchParams(cursor ? { cursor } : {}));
  if (asked.has("like")) {
    page.set("video", asked.get("like"));
    for (const name of ["at", "frame"]) if (asked.has(name)) page.set(name, asked.get(name));
    return [`api/like?${page}`];
  }
  if (asked.has("photo")) {
    const file = photos.get(asked.get("photo"));
    if (!file) throw new Error("That photo is not here any more; drop it once more.");
    page.set("name", file.name);
    return [`api/like?${page}`, { method: "POST", body: file }];
  }
  if (!asked.has("q")) return null;
  page.set("q", asked.get("q"));
  return [`api/search?${page}`];
}

async function search(cursor = null) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  $("filters").classList.toggle("used", FILTERS.some((name) => $(name).value));
  try {
    const call = request(cursor);
    if (!call) return clear();
    $("answer").setAttribute("aria-busy", "true");
    const page = await ask(call[0], { ...call[1], signal });
    if (cursor) page.hits = [...answer.hits, ...page.hits];
    answer = page;
    show(!cursor);
    await recall();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!cursor) clear();
    say(error.message, "error");
    if (error.code === "index") manage(true);
  } finally {
    if (signal === asking.signal) $("answer").removeAttribute("aria-busy");
  }
}

function clear() {
  answer = null;
  say("", "");
  $("hits").replaceChildren();
  $("notes").replaceChildren();
  $("worth").textContent = $("judged").textContent = "";
  for (const id of ["more", "closest", "absent"]) $(id).hidden = true;
}

function say(sentence, kind) {
  $("verdict").textContent = sentence;
  $("verdict").className = kind;
}

function show(anew) {
  const kinds = { confident: "confident", "several plausible": "several", "probably not here": "absent" };
  const hide = answer.status === "probably not here" && anew;
  const verdict = hide ? answer.verdict.replace(/ Closest:$/, "") : answer.verdict;
  say(verdict || answer.warnings[0] || "", kinds[answer.status] ?? "");
  if (anew) chosen = -1;
  $("closest").hidden = !hide;
  $("hits").hidden = hide;
  $("more").hidden = hide || !answer.next;
  $("absent").hidden = !new URLSearchParams(location.search).has("q") || !answer.hits.length;
  $("worth").textContent = answer.worth.replace(" (`--judge`)", "");
  $("notes").replaceChildren(...answer.warnings.map((text) => make("li", { textContent: text })));
  $("hits").replaceChildren(...answer.hits.map(row));
  choose(chosen, false);
  document.title = `${answer.query} · Sureshot`;
}

function row(hit, place) {
  const image = make("img", { src: picture(hit, hit.peak), alt: "", loading: "lazy", width: 320, height: 180 });
  const thumb = make("button", { type: "button", className: "thumb", attributes: { "aria-label": `Play ${fileOf(hit.path)} at ${hit.said.peak}` } }, image);
  thumb.addEventListener("click", () => play(place));
  preview(thumb, image, hit);
  const name = make("strong", { textContent: fileOf(hit.path) + (hit.missing ? " (gone)" : "") });
  const folder = make("small", { textContent: folderOf(hit.path) });
  const copies = hit.copies.map((path) => make("p", {}, make("small", { textContent: `= ${path}` })));
  const words = hit.said.relevant ? make("span", { className: "percent", textContent: `${hit.said.relevant} ` }) : null;
  const times = make("span", { textContent: `best at ${hit.said.peak} · ${hit.said.range}` });
  const deed = (text, act, attributes = {}) => {
    const button = make("button", { type: "button", textContent: text, attributes });
    button.addEventListener("click", () => act(button));
    return button;
  };
  const judgeable = new URLSearchParams(location.search).has("q");
  const save = make("a", { textContent: "Save clip", href: `api/cut/${hit.id}?start=${hit.start}&end=${hit.end}&rank=${hit.rank}`, download: "" });
  const deeds = make("div", { className: "deeds" },
    judgeable ? deed("Right", () => judge(place, "right"), { "aria-pressed": "false", "data-verdict": "right" }) : null,
    judgeable ? deed("Wrong", () => judge(place, "wrong"), { "aria-pressed": "false", "data-verdict": "wrong" }) : null,
    deed("More like this", () => go(new URLSearchParams({ like: hit.id, at: hit.peak }))),
    save,
    deed("Copy path", async (button) => {
      await navigator.clipboard.writeText(hit.path);
      button.textContent = "Copied";
    }));
  const item = make("li", { className: "hit", tabIndex: -1 }, thumb,
    make("div", {}, make("p", {}, words, times), make("p", {}, name), make("p", {}, folder), ...copies, deeds));
  item.addEventListener("focusin", () => choose(place, false));
  return item;
}

function preview(button, image, hit) {
  let turn = null;
  const stop = () => {
    clearInterval(turn);
    turn = null;
    image.src = picture(hit, hit.peak);
  };
  button.addEventListener("pointerenter", (event) => {
    if (event.pointerType !== "mouse" || turn) return;
    const every = Math.ceil(hit.frames.length / 6);
    const times = hit.frames.filter((_, number) => number % every === 0).map((frame) => frame.time);
    let number = 0;
    turn = setInterval(() => (image.src = picture(hit, times[number++ % times.length])), 450);
  });
  button.addEventListener("pointerleave", stop);
}

// --- playing ------------------------------------------------------------------------------------

async function play(place) {
  const hit = answer.hits[place];
  choose(place, false);
  $("player").hidden = false;
  $("playing").textContent = `${hit.path} · ${hit.said.range}, best at ${hit.said.peak}`;
  const video = $("video");
  video.poster = picture(hit, hit.peak);
  video.removeAttribute("src");
  video.load();
  try {
    const asked = new URLSearchParams({ at: hit.peak, start: hit.start, end: hit.end });
    const found = await ask(`api/playing/${hit.id}?${asked}`);
    if (chosen !== place || $("player").hidden) return;
    film = { ...found, hit };
    video.src = found.url;
    video.currentTime = Math.max(hit.peak - found.start, 0);
    await video.play();
  } catch (error) {
    if (error.name !== "AbortError" && error.name !== "NotAllowedError" && !video.error) $("playing").textContent = error.message;
  }
}

$("video").addEventListener("error", async () => {
  if (!film || !$("video").getAttribute("src")) return;
  try {
    await ask(film.url, { headers: { Range: "bytes=0-0" } });
  } catch (error) {
    $("playing").textContent = error instanceof SyntaxError ? "The browser does not play this film." : error.message;
  }
});

function place(seconds) {
  const length = film.end - film.start;
  return `${(100 * Math.min(Math.max(seconds - film.start, 0), length)) / length}%`;
}

$("video").addEventListener("timeupdate", () => {
  if (!film) return;
  const { hit } = film;
  $("mark").style.left = place(hit.start);
  $("mark").style.right = `calc(100% - ${place(hit.end)})`;
  const seconds = $("video").currentTime + film.start;
  $("now").style.left = place(seconds);
  $("track").setAttribute("aria-valuemax", Math.round(film.end));
  $("track").setAttribute("aria-valuenow", Math.round(seconds));
  $("track").setAttribute("aria-valuetext", `second ${Math.round(seconds)}; the moment is ${hit.said.range}`);
});

$("track").addEventListener("click", (event) => {
  const box = $("track").getBoundingClientRect();
  if (film) $("video").currentTime = ((event.clientX - box.left) / box.width) * (film.end - film.start);
});

$("track").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step && film) {
    $("video").currentTime += step;
    event.stopPropagation();
    event.preventDefault();
  }
});

function close() {
  film = null;
  $("video").pause();
  $("video").removeAttribute("src");
  $("video").load();
  $("player").hidden = true;
}

$("close").addEventListener("click", close);
$("frame").addEventListener("click", () => {
  if (!film) return;
  const at = ($("video").currentTime + film.start).toFixed(3);
  go(new URLSearchParams({ like: film.hit.id, at, frame: "true" }));
});

// --- keys ---------------------------------------------------------------------------------------

function choose(next, focus = true) {
  const items = [...$("hits").children];
  chosen = Math.min(Math.max(next, -1), items.length - 1);
  items.forEach((item, number) => item.classList.toggle("chosen", number === chosen));
  if (chosen < 0 || !focus) return;
  items[chosen].querySelector(".thumb").focus();
  items[chosen].scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const open = answer && !$("hits").hidden;
  const acts = {
    ArrowDown: () => open && choose(chosen + 1),
    ArrowUp: () => (chosen <= 0 ? $("query").focus() : choose(chosen - 1)),
    Escape: () => ($("player").hidden ? $("query").select() : close()),
  };
  if (!typing) {
    Object.assign(acts, {
      "/": () => $("query").focus(),
      y: () => open && chosen >= 0 && judge(chosen, "right"),
      n: () => open && chosen >= 0 && judge(chosen, "wrong"),
    });
    if (film && !/^(BUTTON|SUMMARY|A|VIDEO)$/.test(event.target.tagName.replace("BUTTON", event.target.classList.contains("thumb") ? "" : "BUTTON"))) {
      acts[" "] = () => ($("video").paused ? $("video").play() : $("video").pause());
    }
  }
  if (typing && event.target !== $("query")) return;
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});

let pending = null;
$("query").addEventListener("input", () => {
  clearTimeout(pending);
  const replace = Date.now() - typed < 1500; // letters of one search share an entry of the history
  typed = Date.now();
  pending = setTimeout(() => go(wanted(), replace), 180);
});

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearTimeout(pending);
  if ($("query").value.trim() === new URLSearchParams(location.search).get("q") && answer?.hits.length) return play(Math.max(chosen, 0));
  go(wanted());
});

for (const name of FILTERS) $(name).addEventListener("change", () => go(wanted()));
$("unfilter").addEventListener("click", () => {
  for (const name of FILTERS) $(name).value = "";
  go(wanted());
});
$("more").addEventListener("click", () => search(answer.next));
$("closest").addEventListener("click", () => {
  $("closest").hidden = true;
  $("hits").hidden = false;
  $("more").hidden = !answer.next;
  choose(0);
});

// --- a photo ------------------------------------------------------------------------------------

function ofPhoto(file) {
  if (!file) return;
  photos.set(file.name, file);
  $("query").value = "";
  go(new URLSearchParams({ photo: file.name }));
}

$("photo").addEventListener("change", () => ofPhoto($("photo").files[0]));
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", () => document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  ofPhoto(event.dataTransfer.files[0]);
});

// --- judging ------------------------------------------------------------------------------------

async function judge(place, verdict) {
  const meant = verdict === "absent" ? answer.hits : [answer.hits[place]];
  const moments = meant.map(({ id, start, end }) => ({ video: id, start, end }));
  try {
    await send("api/judge", { query: answer.query, verdict, moments });
    await recall();
  } catch (error) {
    $("judged").textContent = error.message;
  }
}

// What was judged of this search, and how far that is from better percentages.
async function recall() {
  const { query } = answer;
  if (!new URLSearchParams(location.search).has("q")) return;
  const known = await ask(`api/judge?${new URLSearchParams({ query })}`);
  if (answer?.query !== query) return;
  $("judged").textContent = known.said;
  $("absent").setAttribute("aria-pressed", String(known.state === "absent"));
  answer.hits.forEach((hit, number) => {
    const told = known.moments.find((one) => one.id === hit.id && one.start < hit.end && hit.start < one.end);
    for (const button of $("hits").children[number].querySelectorAll("[data-verdict]")) {
      button.setAttribute("aria-pressed", String(told !== undefined && told.right === (button.dataset.verdict === "right")));
    }
  });
  if (known.learning) setTimeout(() => learned(query), 500);
}

// The percentages change when what was judged has been learned from.
async function learned(query) {
  const known = await ask(`api/judge?${new URLSearchParams({ query })}`);
  if (answer?.query !== query) return;
  if (known.learning) return setTimeout(() => learned(query), 500);
  const shown = !$("hits").hidden;
  const at = chosen;
  await search();
  if (shown) $("hits").hidden = false;
  choose(at, false);
}

$("absent").addEventListener("click", () => judge(-1, "absent"));

// --- indexing -----------------------------------------------------------------------------------

let job = null;
let events = null;
let here = null;

async function manage(open) {
  $("indexing").hidden = !open;
  $("manage").setAttribute("aria-expanded", String(open));
  if (open) await Promise.all([held(), browse(here)]);
}

async function held() {
  try {
    const state = await ask("api/status");
    $("held").textContent = state.summary;
    return state.videos;
  } catch (error) {
    $("held").textContent = error.code === "index" ? "Nothing is indexed yet. Choose a folder with videos; nothing leaves this machine." : error.message;
    return 0;
  }
}

async function browse(folder) {
  try {
    const found = await ask(`api/folders?${new URLSearchParams(folder ? { folder } : {})}`);
    here = found.folder;
    const step = (text, path) => {
      const button = make("button", { type: "button", textContent: text });
      button.addEventListener("click", () => browse(path));
      return make("li", {}, button);
    };
    $("here").textContent = here ?? "Folders that may be indexed:";
    $("start").hidden = here === null;
    const up = here === null ? [] : [step("↑ up", found.above)];
    $("below").replaceChildren(...up, ...found.folders.map((one) => step(one.name, one.path)));
    $("trouble").textContent = "";
  } catch (error) {
    $("trouble").textContent = error.message;
  }
}

function follow() {
  events?.close();
  events = new EventSource("api/index/events");
  events.addEventListener("message", (event) => progress(JSON.parse(event.data).job));
}

function progress(now) {
  const ended = job && job.state !== now?.state && !["running", "paused"].includes(now?.state);
  job = now;
  $("job").hidden = !job;
  if (!job) return;
  const going = ["running", "paused"].includes(job.state);
  $("bar").value = job.share;
  $("progress").textContent = job.said;
  $("current").textContent = going ? job.current : "";
  $("pause").hidden = $("cancel").hidden = !going;
  $("pause").textContent = job.state === "paused" ? "Go on" : "Pause";
  $("failures").hidden = !job.failed.length;
  $("failures").firstElementChild.textContent = `${job.failed.length} failed`;
  $("failures").lastElementChild.replaceChildren(...job.failed.map((one) => make("li", { textContent: `${one.path}: ${one.reason}` })));
  if (ended) {
    held();
    if (location.search) search();
  }
}

const order = async (address, body = {}) => {
  try {
    progress((await send(address, body)).job);
    $("trouble").textContent = "";
  } catch (error) {
    $("trouble").textContent = error.message;
  }
};

$("manage").addEventListener("click", () => manage($("indexing").hidden));
$("start").addEventListener("click", () => order("api/index", { folders: [here] }));
$("pause").addEventListener("click", () => order(`api/index/${job.state === "paused" ? "resume" : "pause"}`));
$("cancel").addEventListener("click", () => order("api/index/cancel"));

// --- the beginning ------------------------------------------------------------------------------

// The box is focused by hand: `autofocus` waits for a first picture, and letters typed before it were lost.
$("query").focus();
if (location.search || !$("query").value) fill();
else go(wanted()); // somebody typed before this ran
follow();
if (location.search && !asking) search();
if (!(await held())) await manage(true);
else {
  const { videos } = await ask("api/videos?limit=500");
  const folders = [...new Set(videos.map((video) => folderOf(video.path)))].sort();
  $("folders").replaceChildren(...folders.map((value) => make("option", { value })));
}
