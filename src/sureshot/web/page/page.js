// The whole page. It shows what the server says and computes nothing: words, percentages and times
// come from the API as the terminal prints them.

const $ = (id) => document.getElementById(id);
const OF_VIDEOS = ["folder", "longer", "shorter", "since", "until"];
const OF_WORDS = ["min", "present"]; // filters that a picture is not looked for with
const FILTERS = [...OF_VIDEOS, "sort", ...OF_WORDS];
const PICTURE = ["like", "at", "frame", "photo"]; // what is looked for in place of words
const photos = new Map(); // photos that were dropped, by the name in the address
let answer = null; // what is shown: { hits, next, query, address, … }
let chosen = -1; // place of the hit that keys go to
let film = null; // what plays: { hit, start, end, from, … }
let asking = null; // the search under way, which a newer one ends
let typed = 0; // when the last letter was typed

// --- asking the server ------------------------------------------------------------------------

async function ask(address, options = {}) {
  const headers = { ...options.headers, "X-Sureshot": "1" };
  let reply;
  try {
    reply = await fetch(address, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; is `sureshot serve` still running?");
  }
  const values = await reply.json().catch(() => null);
  options.signal?.throwIfAborted();
  if (!values) throw new Error(`The server could not answer that (${reply.status} ${reply.statusText}).`);
  if (!reply.ok) throw Object.assign(new Error(values.error.message), { code: values.error.code });
  return values;
}

// Why a film is not sent; null where it is, as soon as it is made.
async function refusal(address, signal = null) {
  const reply = await fetch(address, { headers: { Range: "bytes=0-0" }, cache: "no-store", signal }).catch(() => null);
  if (reply?.ok) return null;
  const values = await reply?.json().catch(() => null);
  return values?.error.message ?? `The server could not answer that (${reply?.status ?? "it is gone"}).`;
}

// Whatever fails elsewhere is said too.
addEventListener("unhandledrejection", (event) => say(event.reason.message, "error"));

const send = (address, body, method = "POST") =>
  ask(address, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

function make(tag, { attributes = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

const fileOf = (path) => path.slice(path.lastIndexOf("/") + 1);
const absence = (video) => (video.away ? " (not there now)" : video.missing ? " (gone)" : "");
const folderOf = (path) => path.slice(0, path.lastIndexOf("/")) || "/";
const picture = (hit, at) => `api/thumbnail/${hit.id}?at=${at}&side=180`;

// --- the address: every search has one ----------------------------------------------------------

const ofPicture = (asked) => asked.has("like") || asked.has("photo");

// What the boxes ask: of a picture, if one is given; with no words of the picture there is.
function wanted(picture = null) {
  const q = $("query").value.trim();
  const now = [...new URLSearchParams(location.search)].filter(([name]) => PICTURE.includes(name));
  const asked = new URLSearchParams(picture ?? (q ? { q } : now));
  const sent = FILTERS.filter((name) => !ofPicture(asked) || !OF_WORDS.includes(name));
  for (const name of sent) {
    const value = name === "folder" ? $(name).value : $(name).value.trim(); // a folder may end with a space
    if (value.trim()) asked.set(name, value);
  }
  const old = new URLSearchParams(location.search);
  if (old.has("correct") && asked.get("q") === old.get("q")) asked.set("correct", old.get("correct"));
  return asked;
}

function go(asked, replace = false) {
  if (!asked.has("q")) $("query").value = ""; // more like this: not what stood in the box
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
    if (name !== "longer" && name !== "shorter") asked.set(name, value);
    else {
      // People give minutes, or a clock time; the server takes seconds.
      const parts = value.replace(",", ".").split(":").map(Number);
      const seconds = parts.reduce((sum, part) => 60 * sum + part, 0) * (parts.length > 1 ? 1 : 60);
      if (!(seconds >= 0)) throw new Error(`“${value}” is no length; write minutes, such as 1.5, or 1:30.`);
      asked.set(name, seconds);
    }
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

function request(cursor, shown) {
  const asked = new URLSearchParams(location.search);
  const page = filtered(new URLSearchParams(cursor ? { cursor } : {}));
  if (shown) page.set("limit", Math.min(10 * Math.ceil(shown / 10), 100)); // the most of one reply
  if (asked.has("like")) {
    page.set("video", asked.get("like"));
    for (const name of ["at", "frame"]) if (asked.has(name)) page.set(name, asked.get(name));
    return [`api/like?${page}`];
  }
  if (asked.has("photo")) {
    const file = photos.get(asked.get("photo"));
    if (!file) throw new Error("That photo is no longer here; drop it again.");
    page.set("name", file.name);
    return [`api/like?${page}`, { method: "POST", body: file }];
  }
  if (!asked.has("q")) return null;
  for (const name of ["q", "correct"]) if (asked.has(name)) page.set(name, asked.get(name));
  return [`api/search?${page}`];
}

// Asks what the address says, or for the next hits; `again` leaves who reads the hits where they are.
async function search(cursor = null, again = false) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const address = location.search;
  const asked = new URLSearchParams(address);
  const stays = answer?.address === address && (cursor !== null || again);
  if (!stays) cursor = null; // of what is shown, which is not what is asked for
  const among = document.querySelector("main").contains(document.activeElement); // what is replaced now, perhaps
  for (const name of OF_WORDS) $(name).disabled = ofPicture(asked);
  $("filters").classList.toggle("used", FILTERS.some((name) => asked.has(name)));
  try {
    const call = request(cursor, stays && !cursor ? answer.hits.length : 0);
    if (!call) {
      clear();
      return await shelf(false, among);
    }
    $("shelf").hidden = true;
    if (asked.has("q")) $("sample").hidden = true;
    else if (!stays) {
      clear(); // hits of a sentence are not those of a picture
      sample();
      say("Looking for moments like this …", "");
      scrollTo(0, 0);
    }
    $("answer").setAttribute("aria-busy", "true");
    const page = await ask(call[0], { ...call[1], signal });
    if (cursor) page.hits = [...answer.hits, ...page.hits];
    if (cursor && asked.get("sort") === "date") page.hits.sort((a, b) => Date.parse(b.date) - Date.parse(a.date) || a.rank - b.rank);
    if (cursor) for (const name of ["verdict", "note", "hint", "warnings"]) page[name] = answer[name]; // of the whole
    const before = answer;
    answer = { ...page, address };
    show(stays ? before : null, among);
    await recall().catch(unjudged);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (cursor) return unjudged(error); // next to the button that was pressed
    if (!stays) clear();
    $("shelf").hidden = true;
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
  $("names").replaceChildren();
  $("sample").hidden = true;
  $("worth").textContent = $("judged").textContent = "";
  for (const id of ["more", "closest", "absent", "weak"]) $(id).hidden = true;
  document.title = "Sureshot";
}

// A sentence of the terminal, with the options of it as they are called here.
const inWords = (sentence) => sentence.replace(/(?:--|`)([a-z]+)(?:`|(?![a-z-]))/g, (flag, name) => (FILTERS.includes(name) ? `“${$(name).closest("label").firstChild.textContent.trim()}”` : flag));

function say(sentence, kind) {
  $("verdict").textContent = inWords(sentence);
  $("verdict").className = kind;
}

// Whether the keys would go nowhere, as what they went to has been replaced.
const isLost = (among) => among && document.activeElement === document.body;

// Shows the answer; after one to the same search the mark, the keys and what was opened stay.
function show(before, among) {
  const kinds = { confident: "confident", "several plausible": "several", "probably not here": "absent" };
  const hide = answer.status === "probably not here" && (!before || $("hits").hidden);
  say(answer.verdict || answer.warnings[answer.typed ? 1 : 0] || "", kinds[answer.status] ?? "");
  const held = isLost(among) || $("hits").contains(document.activeElement); // somebody is there already
  const controls = () => [...($("hits").children[chosen]?.querySelectorAll("button, a") ?? [])];
  const control = controls().indexOf(document.activeElement);
  if (before) {
    const was = before.hits[chosen];
    const now = answer.hits.findIndex((hit) => hit.id === was?.id && hit.start === was.start && hit.source === was.source);
    if (now >= 0) chosen = now;
  } else chosen = held ? 0 : -1;
  $("closest").hidden = !hide;
  $("hits").hidden = hide;
  $("more").hidden = hide || !answer.next;
  const here = new URLSearchParams(location.search);
  // Of some videos it says nothing about the others.
  $("absent").hidden = !here.has("q") || !answer.hits.length || OF_VIDEOS.some((name) => here.has(name));
  $("worth").textContent = (answer.note === answer.verdict ? "" : answer.note) + (answer.hint.startsWith("Rate") ? " Rate a few searches to fit them to yours." : "");
  const left = new URLSearchParams(location.search).has("min");
  $("weak").hidden = hide || !(left || answer.hits.some((hit) => hit.weak));
  $("weak").textContent = left ? "Show weak hits" : "Hide weak hits";
  const warnings = answer.warnings.slice((answer.typed ? 1 : 0) + (answer.verdict ? 0 : 1)); // the first are said already
  $("notes").replaceChildren(...[answer.typed ? corrected() : null, ...warnings].filter(Boolean).map((note) => make("li", {}, typeof note === "string" ? noted(note) : note)));
  if (!before) named(answer).catch((error) => say(error.message, "error"));
  $("hits").replaceChildren(...answer.hits.map(row));
  choose(chosen, held && !hide && !before);
  if (before) controls()[control]?.focus({ preventScroll: true });
  if (isLost(among) && hide) $("closest").focus();
  else if (isLost(among)) {
    if (before && answer.hits.length > before.hits.length) choose(before.hits.length);
    else $("hits").children[Math.max(chosen, 0)]?.querySelector(".thumb").focus({ preventScroll: true });
  }
  document.title = `${answer.query} · Sureshot`;
}

// A note; where it names days, with a button for what was recorded then.
function noted(note) {
  const [, before, since, until] = /^(.*?)(?: For videos[^.]*?)? --since ([\d-]+) --until ([\d-]+)\.$/.exec(note) ?? [];
  if (!since) return inWords(note);
  if ($("since").value === since && $("until").value === until) return before;
  const days = since === until ? `on ${since}` : `from ${since} to ${until}`;
  const button = make("button", { type: "button", textContent: `Only what was recorded ${days}` });
  button.addEventListener("click", () => {
    $("since").value = since;
    $("until").value = until;
    $("filters").open = true;
    go(wanted());
  });
  return make("span", {}, `${before} `, button);
}

// That misspelt words were replaced, and the way to insist.
function corrected() {
  const button = make("button", { type: "button", textContent: `Search for “${answer.typed}” instead` });
  const asked = new URLSearchParams(location.search);
  asked.set("correct", "false");
  button.addEventListener("click", () => go(asked));
  return make("span", {}, "Showing results for ", make("strong", { textContent: answer.query }), ". ", button);
}

// Videos and folders whose names match, apart from the hits.
async function named(mine) {
  $("names").replaceChildren();
  const rows = mine.names.map(async (one) => {
    if (one.id) return tile(await ask(`api/videos/${one.id}`), -1, "by name · ");
    const button = make("button", { type: "button", textContent: fileOf(one.path), title: one.path });
    button.addEventListener("click", () => within(one.path));
    return make("li", { className: "tile place" }, button, make("small", { textContent: ` by name · ${one.videos === 1 ? "1 video" : `${one.videos} videos`}` }));
  });
  const more = mine.names_found - mine.names.length;
  const items = await Promise.all(rows);
  if (more > 0) items.push(make("li", { className: "tile place", textContent: `by name · ${more} more` }));
  if (answer === mine) $("names").replaceChildren(...items);
}

// The videos of a folder, where nothing is asked of them.
function within(folder) {
  $("query").value = "";
  $("folder").value = folder;
  $("filters").open = true;
  go(wanted());
}

// The photo, or the moment of a video, that similar moments are looked for.
function sample() {
  const asked = new URLSearchParams(location.search);
  const file = photos.get(asked.get("photo"));
  if (!file && !asked.has("like")) return;
  URL.revokeObjectURL($("sample").src);
  $("sample").src = file ? URL.createObjectURL(file) : picture({ id: asked.get("like") }, asked.get("at") ?? 0);
  $("sample").hidden = false;
}

// A picture that plays; where the video is not there, words in its place.
function thumbnail(address, label, act, gone = "") {
  const image = make("img", { alt: "", loading: "lazy", width: 320, height: 180 });
  const thumb = make("button", { type: "button", className: "thumb", attributes: { "aria-label": label } }, image);
  const none = () => {
    image.hidden = true;
    thumb.classList.add("absent");
    thumb.append(gone.trim() || "no picture");
  };
  if (gone) none();
  else image.src = address;
  image.addEventListener("error", none, { once: true });
  thumb.addEventListener("click", act);
  return thumb;
}

function row(hit, place) {
  const spoken = `${fileOf(hit.path)} at ${hit.text.peak}`;
  const thumb = thumbnail(picture(hit, hit.peak), `Play ${spoken}`, () => play(place), absence(hit));
  if (!absence(hit)) preview(thumb, thumb.firstChild, hit);
  const name = make("strong", {}, title(hit, () => play(place)));
  const folder = make("small", {}, folderOf(hit.path), ...(hit.date ? [" · ", day(hit)] : []));
  const others = [hit.text.scene, ...hit.copies.map((copy) => `copy: ${copy.path}${absence(copy)} ${copy.text}`)].filter(Boolean);
  const below = others.map((textContent) => make("p", {}, make("small", { textContent })));
  const words = hit.text.probability ? make("span", { className: "percent", textContent: `${hit.text.probability} likely` }) : null;
  const number = new URLSearchParams(location.search).has("sort") ? `${hit.rank}. ` : null;
  const times = make("span", {}, `best at ${hit.text.peak} · ${hit.text.range}`);
  const said = hit.lines.map((line) => make("p", { className: "said" }, ...marked(line)));
  const deed = (text, act, attributes = {}) => {
    const button = make("button", { type: "button", textContent: text, attributes });
    button.addEventListener("click", () => act(button));
    return button;
  };
  const judgeable = new URLSearchParams(location.search).has("q");
  const trouble = make("small", { attributes: { role: "alert" } });
  const save = make("a", { textContent: "Save clip", href: `api/cut/${hit.id}?start=${hit.start}&end=${hit.end}&rank=${hit.rank}`, download: "" });
  save.addEventListener("click", async (event) => {
    if (save.dataset.made) return;
    event.preventDefault(); // a browser would save the reason as a file, or say nothing
    trouble.textContent = "Cutting …";
    trouble.textContent = (await refusal(save.href)) ?? "";
    if (trouble.textContent) return;
    save.dataset.made = "yes";
    save.click();
  });
  const deeds = make("div", { className: "deeds" },
    judgeable ? deed("Right", () => judge(place, "right"), { "aria-pressed": "false", "data-verdict": "right", "aria-label": `Right: ${spoken}` }) : null,
    judgeable ? deed("Wrong", () => judge(place, "wrong"), { "aria-pressed": "false", "data-verdict": "wrong", "aria-label": `Wrong: ${spoken}` }) : null,
    deed("More like this", () => go(wanted({ like: hit.id, at: hit.peak }))),
    save,
    deed("Copy path", async (button) => {
      const done = await navigator.clipboard?.writeText(hit.path).then(() => true, () => false);
      if (done) {
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy path"), 2000);
      } else trouble.textContent = `Browsers copy only from localhost or https. The path is ${hit.path}`;
    }),
    trouble);
  const item = make("li", { className: hit.weak ? "hit weak" : "hit", tabIndex: -1 }, thumb,
    make("div", {}, make("p", {}, number, words, times), make("p", {}, name), make("p", {}, folder), ...said, ...below), deeds);
  item.addEventListener("focusin", () => choose(place, false));
  return item;
}

// The words of a video that match, those of the query marked.
function marked({ said, text, words }) {
  const parts = words.length ? text.split(new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})(?![\\p{L}\\p{N}])`, "u")) : [text];
  const begin = said.slice(0, said.indexOf(": ") + 2);
  return [`${begin}“`, ...parts.map((part) => (words.includes(part) ? make("mark", { textContent: part }) : part)), "”"];
}

// The name of a file, which plays it as its picture does; keys stop at the picture alone.
function title(video, act) {
  const name = make("button", { type: "button", className: "name", textContent: fileOf(video.path) + absence(video), tabIndex: -1 });
  name.addEventListener("click", act);
  return name;
}

function preview(button, image, hit) {
  let turn = null;
  const stop = () => {
    clearInterval(turn);
    turn = null;
    image.src = picture(hit, hit.peak);
  };
  if (!hit.frames.length || matchMedia("(prefers-reduced-motion: reduce)").matches) return; // of words alone
  button.addEventListener("pointerenter", (event) => {
    if (event.pointerType !== "mouse" || turn) return;
    const every = Math.ceil(hit.frames.length / 6);
    const times = hit.frames.filter((_, number) => number % every === 0).map((frame) => frame.time);
    let number = 0;
    turn = setInterval(() => {
      if (image.isConnected) image.src = picture(hit, times[number++ % times.length]);
      else clearInterval(turn); // a row that was replaced is not left
    }, 450);
  });
  button.addEventListener("pointerleave", stop);
}

// --- what there is, where nothing is asked -------------------------------------------------------

let places = 0; // folders with videos

async function shelf(more = false, among = false) {
  const asked = filtered(new URLSearchParams());
  for (const name of ["sort", "min", "present"]) asked.delete(name); // of hits, not of videos
  if (more) asked.set("cursor", $("rest").value);
  const found = await ask(`api/videos?${new URLSearchParams({ sort: "date", failed: false, limit: 12 })}&${asked}`);
  if (answer || new URLSearchParams(location.search).has("q")) return;
  $("shelf").hidden = !found.videos.length && !asked.size;
  const where = places > 1 && !asked.has("folder") ? ` in ${places} folders` : "";
  $("shelf-title").textContent = found.text + where + (found.failed ? `; ${found.failed} could not be indexed` : "");
  $("rest").hidden = !found.next;
  $("rest").value = found.next ?? "";
  const before = more ? $("latest").children.length : 0;
  if (!more) $("latest").replaceChildren();
  $("latest").append(...found.videos.map((video, place) => tile(video, before + place)));
  choose(more ? before : isLost(among) ? 0 : -1);
}

// When a video was recorded, and on hovering what says so.
function day(video) {
  const told = { file: "when the file last changed; it does not say when it was recorded", exif: "recorded, by EXIF", name: "by the name of the file" };
  const why = told[video.date_from] ?? `recorded, by ${video.date_from} in the file`;
  return make("time", { dateTime: video.date, textContent: video.date.slice(0, 10), title: why });
}

function tile(video, place, why = "") {
  const hit = { ...video, start: 0, end: video.seconds, peak: 0, text: { range: video.text } };
  const thumb = thumbnail(picture(video, video.seconds / 3), `Play ${fileOf(video.path)}`, () => play(place, hit), absence(video));
  const name = make("p", {}, title(video, () => play(place, hit)));
  const item = make("li", { className: "tile" }, thumb, name, make("small", {}, `${why}${video.text} · `, day(video)));
  item.addEventListener("focusin", () => choose(place, false));
  return item;
}

async function folders() {
  const { videos, next } = await ask("api/videos?limit=500&failed=false");
  const names = next ? (await ask("api/status")).folders : [...new Set(videos.map((video) => folderOf(video.path)))].sort();
  places = names.length;
  $("folders").replaceChildren(...names.map((value) => make("option", { value })));
  const most = 12;
  const button = (name) => {
    const one = make("button", { type: "button", textContent: fileOf(name) || name, title: name });
    one.addEventListener("click", () => within(name));
    return make("li", {}, one);
  };
  const all = make("button", { type: "button", textContent: `${names.length - most} more folders` });
  all.addEventListener("click", () => $("places").replaceChildren(...names.map(button)));
  const shown = names.length > most + 1 ? [...names.slice(0, most).map(button), make("li", {}, all)] : names.map(button);
  $("places").replaceChildren(...(names.length > 1 ? shown : []));
}

// --- playing ------------------------------------------------------------------------------------

let playing = new AbortController(); // what plays asks with it: nothing is made or started for a film that was left

// Plays a hit from its best second, or another one; `converted` where this browser cannot play it as it is.
async function play(place, hit = answer.hits[place], at = hit.peak, converted = false) {
  playing.abort();
  playing = new AbortController();
  const { signal } = playing;
  choose(place, false);
  film = null;
  $("caption").hidden = true;
  $("player").hidden = false;
  $("playing").textContent = `${hit.path} · ${hit.text.range}${hit.text.peak ? `, best at ${hit.text.peak}` : ""}`;
  const video = $("video");
  if (video.poster.startsWith("blob:")) URL.revokeObjectURL(video.poster);
  video.poster = picture(hit, at);
  video.removeAttribute("src");
  video.load();
  try {
    const asked = new URLSearchParams({ at, start: hit.start, end: hit.end, ...(converted ? { converted } : {}) });
    const found = await ask(`api/playing/${hit.id}?${asked}`, { signal });
    for (const part of [found, found.first ?? {}]) part.url = part.url?.slice(1); // below a proxy's path too
    const { url, start } = found.first ?? found;
    film = { ...found, hit, converted, from: start, wish: null, lines: [] };
    captions(film, signal);
    if (found.way === "clip") $("playing").textContent += ` · ${found.text} of the video, made for this browser`;
    $("player").classList.toggle("early", found.first !== null);
    begin(url, Math.max(at - start, 0));
    if (found.first) whole(film, signal);
    await video.play();
  } catch (error) {
    if (!signal.aborted && error.name !== "AbortError" && error.name !== "NotAllowedError" && !video.error) $("playing").textContent = error.message;
  }
}

// Some browsers forget a time that is set before they know the film.
function begin(url, second) {
  const video = $("video");
  video.onloadedmetadata = () => Math.abs(video.currentTime - second) > 0.1 && (video.currentTime = second);
  video.src = url;
  video.currentTime = second;
}

// What is said and written, shown below the film while it plays.
async function captions(one, signal) {
  const known = await ask(`api/lines/${one.hit.id}`, { signal }).catch(() => ({ lines: [] }));
  const all = known.lines.filter((line) => line.source !== "picture");
  const found = one.hit.lines?.[0];
  const alike = (line, other) => line.source === other?.source && line.language === other.language;
  const track = all.find((line) => alike(line, found)) ?? all.find((line) => line.source === "subtitles") ?? all[0];
  one.lines = all.filter((line) => alike(line, track));
  if (film === one) $("caption").hidden = !one.lines.length;
}

// The film around the seconds that play already, as soon as it is made.
async function whole(one, signal) {
  const video = $("video");
  const trouble = await refusal(one.url, signal);
  if (film !== one) return;
  if (trouble) return ($("playing").textContent = trouble);
  const at = one.wish ?? video.currentTime + one.from;
  const goes = !video.paused || video.ended;
  const poster = await shown(video);
  if (film !== one) return;
  if (poster) video.poster = poster;
  one.from = one.start;
  begin(one.url, at - one.start);
  $("player").classList.remove("early");
  if (goes) await video.play().catch(() => null);
}

// What the player shows, to stand there while another film takes its place.
async function shown(video) {
  if (!video.videoWidth) return null;
  const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
  canvas.getContext("2d").drawImage(video, 0, 0);
  return URL.createObjectURL(await canvas.convertToBlob({ type: "image/jpeg" }));
}

function seek(second) {
  const video = $("video");
  const last = film.from + (video.duration || 0);
  if (second >= film.from && second <= last) video.currentTime = second - film.from;
  else if (second >= film.start && second <= film.end) film.wish = second; // not made yet
  else play(chosen, film.hit, second, film.converted); // in another part
}

$("video").addEventListener("error", async () => {
  if (!film || !$("video").getAttribute("src")) return;
  const one = film;
  const trouble = await refusal($("video").src);
  if (film !== one) return;
  if (!trouble && one.way !== "clip") return play(chosen, one.hit, one.hit.peak, true);
  $("playing").textContent = trouble ?? "This browser cannot play this video.";
});

const place = (seconds) => `${(100 * Math.min(Math.max(seconds, 0), film.length)) / film.length}%`;

$("video").addEventListener("timeupdate", () => {
  if (!film) return;
  const { hit } = film;
  $("mark").style.left = place(hit.start);
  $("mark").style.right = `calc(100% - ${place(hit.end)})`;
  const seconds = $("video").currentTime + film.from;
  const now = film.lines.filter((line) => line.start <= seconds && seconds < line.end);
  $("caption").textContent = now.map((line) => line.text).join("\n");
  $("now").style.left = place(seconds);
  $("track").setAttribute("aria-valuemax", Math.round(film.length));
  $("track").setAttribute("aria-valuenow", Math.round(seconds));
  $("track").setAttribute("aria-valuetext", `second ${Math.round(seconds)}; the moment is ${hit.text.range}`);
});

$("track").addEventListener("click", (event) => {
  const box = $("track").getBoundingClientRect();
  if (film) seek(((event.clientX - box.left) / box.width) * film.length);
});

$("track").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity }[event.key];
  if (step && film) {
    seek(Math.min(Math.max($("video").currentTime + film.from + step, 0), film.length));
    event.stopPropagation();
    event.preventDefault();
  }
});

function close() {
  if ($("player").contains(document.activeElement)) {
    if (chosen >= 0) choose(chosen);
    else $("query").focus();
  }
  film = null;
  playing.abort();
  $("video").pause();
  $("video").removeAttribute("src");
  $("video").load();
  $("player").hidden = true;
  $("caption").hidden = true;
}

$("close").addEventListener("click", close);
$("frame").addEventListener("click", () => {
  if (!film) return;
  const at = ($("video").currentTime + film.from).toFixed(3);
  go(wanted({ like: film.hit.id, at, frame: "true" }));
});

// --- keys ---------------------------------------------------------------------------------------

function choose(next, focus = true) {
  const items = [...$(answer ? "hits" : "latest").children];
  chosen = Math.min(Math.max(next, -1), items.length - 1);
  items.forEach((item, number) => item.classList.toggle("chosen", number === chosen));
  if (chosen < 0 || !focus) return;
  items[chosen].querySelector(".thumb").focus();
  items[chosen].scrollIntoView({ block: "nearest" });
}

// What leads on where no hits are shown: those that were held back, or the first found by its name.
const further = () => ($("closest").hidden ? $("names").querySelector("button") : $("closest"));

addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const open = answer && !$("hits").hidden;
  const acts = {
    ArrowDown: () => (open && answer.hits.length) || !answer ? choose(chosen + 1) : further()?.focus(),
    ArrowUp: () => (chosen <= 0 ? $("query").focus() : choose(chosen - 1)),
    Escape: () => ($("player").hidden ? $("query").select() : close()),
  };
  if (!typing) {
    acts["/"] = () => $("query").focus();
    if (open && chosen >= 0 && !event.target.closest("header, #indexing")) {
      Object.assign(acts, { y: () => judge(chosen, "right"), n: () => judge(chosen, "wrong") });
    }
    if (event.target === $("video")) for (const name of ["ArrowDown", "ArrowUp"]) delete acts[name]; // its volume
    const ofFilm = event.target.classList.contains("thumb") && film?.hit.id === answer?.hits[chosen]?.id && film?.hit.start === answer?.hits[chosen]?.start;
    if (film && (ofFilm || !/^(BUTTON|SUMMARY|A|VIDEO)$/.test(event.target.tagName))) {
      acts[" "] = () => ($("video").paused ? $("video").play() : $("video").pause());
    }
  }
  if (typing && event.target !== $("query")) return;
  const act = acts[event.key] ?? acts[event.key.toLowerCase()]; // with Caps Lock
  if (!act) return;
  event.preventDefault();
  act();
});

let pending = null; // the timer of letters that were not searched for yet
let fresh = false; // whether these begin another search; the letters of one share an entry of the history
$("query").addEventListener("input", () => {
  clearTimeout(pending);
  fresh = (pending !== null && fresh) || Date.now() - typed >= 1500;
  typed = Date.now();
  pending = setTimeout(() => {
    pending = null;
    go(wanted(), !fresh);
  }, 180);
});

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  clearTimeout(pending);
  const isShown = answer?.address === location.search && $("query").value.trim() === new URLSearchParams(location.search).get("q");
  const isAsked = document.activeElement === $("query"); // and not a filter
  if (isAsked && isShown && answer.hits.length && !$("hits").hidden) return play(Math.max(chosen, 0));
  if (isAsked && isShown && further()) return further().click();
  go(wanted(), pending !== null && !fresh);
  pending = null;
});

for (const name of FILTERS) {
  $(name).addEventListener("change", () => {
    const isHalf = $(name).type === "date" && $(name).value && $(name).value < "1000"; // 0002, 0020, 0202, 2024
    if (!isHalf) go(wanted());
  });
}
$("unfilter").addEventListener("click", () => {
  for (const name of FILTERS) $(name).value = "";
  go(wanted());
});
$("weak").addEventListener("click", () => {
  $("min").value = $("min").value ? "" : "0.2";
  go(wanted());
});
$("more").addEventListener("click", () => search(answer.next));
$("rest").addEventListener("click", () => shelf(true));
$("closest").addEventListener("click", () => {
  $("closest").hidden = true;
  $("hits").hidden = false;
  $("more").hidden = !answer.next;
  choose(0);
});

// --- a photo ------------------------------------------------------------------------------------

function ofPhoto(file) {
  if (!file) return;
  const name = photos.has(file.name) ? `${file.name} ${photos.size + 1}` : file.name; // all cameras have a 1.jpg
  photos.set(name, file);
  $("query").value = "";
  go(wanted({ photo: name }));
}

$("photo").addEventListener("change", () => {
  ofPhoto($("photo").files[0]);
  $("photo").value = ""; // or else the same one again would be no change
});
const hasFile = (event) => event.dataTransfer.types.includes("Files"); // words go where they are dropped
addEventListener("dragover", (event) => {
  if (!hasFile(event)) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", () => document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  if (!hasFile(event)) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  ofPhoto(event.dataTransfer.files[0]);
});

// --- judging ------------------------------------------------------------------------------------

// A verdict that is given twice is taken back.
async function judge(place, given) {
  const button = given === "absent" ? $("absent") : $("hits").children[place].querySelector(`[data-verdict=${given}]`);
  if (!button) return; // of a video or a photo there is no verdict
  const verdict = button.getAttribute("aria-pressed") === "true" ? "unjudged" : given;
  const meant = given === "absent" ? answer.hits : [answer.hits[place]];
  const moments = meant.map(({ id, start, end, source }) => ({ video: id, start, end, source }));
  try {
    await send("api/judge", { query: answer.query, verdict, moments });
    await recall();
  } catch (error) {
    const trouble = button.closest(".hit")?.querySelector("[role=alert]");
    if (trouble) trouble.textContent = error.message;
    else unjudged(error);
  }
}

// That judging fails is no reason to show no hits.
function unjudged(error) {
  $("judged").textContent = error.message;
}

// What was judged of this search, and how far that is from better percentages.
async function recall() {
  const { query } = answer;
  if (!new URLSearchParams(location.search).has("q")) return;
  const known = await ask(`api/judge?${new URLSearchParams({ query })}`);
  if (answer?.query !== query) return;
  $("judged").textContent = known.text;
  $("absent").setAttribute("aria-pressed", String(known.state === "absent"));
  answer.hits.forEach((hit, number) => {
    const told = known.moments.find((one) => one.id === hit.id && one.start < hit.end && hit.start < one.end);
    for (const button of $("hits").children[number].querySelectorAll("[data-verdict]")) {
      button.setAttribute("aria-pressed", String(told !== undefined && told.right === (button.dataset.verdict === "right")));
    }
  });
  if (known.learning) setTimeout(() => learned(query).catch(unjudged), 500);
}

// The percentages change when what was judged has been learned from.
async function learned(query) {
  const known = await ask(`api/judge?${new URLSearchParams({ query })}`);
  if (answer?.query !== query) return;
  if (known.learning) return setTimeout(() => learned(query).catch(unjudged), 500);
  await search(null, true);
}

$("absent").addEventListener("click", () => judge(-1, "absent"));

// --- indexing -----------------------------------------------------------------------------------

let job; // the last one, null where there was none; undefined until the server has said
let events = null;
let here = null;

async function manage(open) {
  $("indexing").hidden = !open;
  $("manage").setAttribute("aria-expanded", String(open));
  follow();
  if (open) await Promise.all([held(), browse(here)]);
}

async function held() {
  try {
    const state = await ask("api/status");
    const lines = state.summary.split("\n").map((line) => make("p", {}, make("strong", { textContent: line.slice(0, 12).trim() }), ` ${line.slice(12)}`));
    const isSmall = (line) => /^(Index|Model|Windows|On disk|Percentages) /.test(line.textContent);
    const small = make("details", {}, make("summary", { textContent: "Details" }), ...lines.filter(isSmall));
    $("held").replaceChildren(...lines.filter((line) => !isSmall(line)), small);
    list("unread", "could not be indexed", state.failed);
    return state.videos;
  } catch (error) {
    $("held").textContent = error.code === "index" ? "Nothing is indexed yet. Choose a folder with videos; nothing leaves this machine." : error.message;
    return 0;
  }
}

// Files that failed, with their reasons, behind their number.
function list(id, what, failed, count = failed.length) {
  $(id).hidden = !count;
  $(id).firstElementChild.textContent = `${count} ${what}`;
  $(id).lastElementChild.replaceChildren(...failed.map((one) => make("li", { textContent: `${one.path}: ${one.reason}` })));
}

async function browse(folder) {
  try {
    const found = await ask(`api/folders?${new URLSearchParams(folder ? { folder } : {})}`);
    here = found.folder;
    const pressed = $("below").contains(document.activeElement);
    const step = (text, path) => {
      const button = make("button", { type: "button", textContent: text });
      button.addEventListener("click", () => browse(path));
      return make("li", {}, button);
    };
    $("here").textContent = here ?? "Folders that may be indexed:";
    $("start").hidden = here === null;
    const up = here === null ? [] : [step("↑ up", found.above)];
    $("below").replaceChildren(...up, ...found.folders.map((one) => step(one.name, one.path)));
    if (pressed) $("here").focus(); // the button that was pressed is gone
    $("trouble").textContent = "";
  } catch (error) {
    $("trouble").textContent = error.message;
  }
}

const isGoing = (one) => ["running", "paused"].includes(one?.state);

// Only while there is something to see: all tabs of a browser share six connections to a server,
// and a stream holds one for as long as it is open.
function follow() {
  const wish = !document.hidden && (isGoing(job) || !$("indexing").hidden);
  if (wish === (events !== null)) return;
  events?.close();
  events = wish ? new EventSource("api/index/events") : null;
  events?.addEventListener("message", (event) => progress(JSON.parse(event.data).job));
  events?.addEventListener("error", ({ target }) => {
    if (target !== events || target.readyState !== EventSource.CLOSED) return; // it tries again by itself
    events = null;
    setTimeout(() => look().catch((error) => ($("trouble").textContent = error.message)), 2000);
  });
}

// What began or ended while nothing was followed.
async function look() {
  follow();
  progress((await ask("api/index")).job);
}

document.addEventListener("visibilitychange", () => look().catch(() => null));

function progress(now) {
  const ended = job !== undefined && !isGoing(now) && (job?.state !== now?.state || job?.text !== now?.text);
  job = now;
  follow();
  $("job").hidden = !job;
  if (!job) return;
  const going = isGoing(job);
  $("bar").value = job.share;
  $("progress").textContent = job.state === "paused" ? `Paused: ${job.text}` : job.text;
  if ($("state").dataset.state !== job.state) $("state").textContent = `Indexing is ${job.state}`; // what is read out
  $("state").dataset.state = job.state;
  $("current").textContent = going ? job.current : "";
  if (!going && [$("pause"), $("cancel")].includes(document.activeElement)) $("here").focus();
  $("pause").hidden = $("cancel").hidden = !going;
  $("pause").textContent = job.state === "paused" ? "Resume" : "Pause";
  list("failures", "failed", job.failed, job.failures);
  if (ended) {
    held();
    folders().then(() => search(null, true), () => null);
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

// The token has become a cookie, and is to stand in no history or bookmark.
const entrance = new URLSearchParams(location.search);
if (entrance.has("token")) {
  entrance.delete("token");
  history.replaceState(null, "", entrance.size ? `?${entrance}` : location.pathname);
}

// The box is focused by hand: `autofocus` waits for a first picture, and letters typed before it were lost.
$("query").focus();
if (location.search || !$("query").value) fill();
else go(wanted()); // somebody typed before this ran
look().catch(() => null);
if (location.search && !asking) search();
(async () => {
  if (!(await held())) return manage(true);
  await folders();
  if (!location.search) await search();
})();
