// Every address with its fields, from the OpenAPI document.

const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  element.textContent = text;
  element.append(...children);
  return element;
};

const kind = ({ type, anyOf, enum: values }) =>
  type ?? values?.join(", ") ?? anyOf?.map((one) => one.format ?? one.type).filter((one) => one !== "null").join(" or ") ?? "";

// The token has become a cookie, and is to stand in no history or bookmark.
if (location.search) history.replaceState(null, "", location.pathname);

const openapi = await (await fetch("api/openapi.json")).json();
for (const [address, methods] of Object.entries(openapi.paths)) {
  for (const [method, act] of Object.entries(methods)) {
    const fields = make("ul", "");
    for (const { name, required, schema } of act.parameters ?? []) {
      fields.append(make("li", "", make("code", name), ` ${kind(schema)}${required ? ", required" : ""}: ${schema.description ?? ""}`));
    }
    const given = act.requestBody?.content["application/json"]?.schema;
    const body = openapi.components.schemas[given?.$ref?.split("/").pop()];
    for (const [name, schema] of Object.entries(body?.properties ?? {})) {
      const required = body.required?.includes(name) ? ", required" : "";
      fields.append(make("li", "in the body: ", make("code", name), ` ${kind(schema)}${required}: ${schema.description ?? ""}`));
    }
    const codes = Object.entries(act.responses).map(([code, { description }]) => `${code} ${description}`).join(" · ");
    document.getElementById("addresses").append(
      make("h2", "", make("code", `${method.toUpperCase()} ${address}`)),
      make("p", act.description ?? ""), fields, make("small", codes));
  }
}
