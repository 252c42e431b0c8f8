// SPDX-License-Identifier: MIT OR Apache-2.0
// Requests to the server. The token comes with the link, after `#`, so that no server sees it in a URL. It is kept for this
// tab only.

const KEY = "castanet-token";

function token() {
  const given = /^#token=([\w-]+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(KEY, given[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY);
}

let secret = token();
addEventListener("hashchange", () => {
  secret = token();
  location.reload();
});

/** Forgets a token that the server does not accept, for example because the router was restarted. */
export function forgetToken() {
  sessionStorage.removeItem(KEY);
  secret = null;
}

/** An error of the server. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, body, signal) {
  const headers = {};
  if (secret) headers.Authorization = `Bearer ${secret}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(`/api/${path}`, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "the server does not answer");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, answer.error?.message ?? response.statusText);
  return answer;
}

const part = encodeURIComponent;

/** The path of a handler. */
const handlerPath = (element, handler) => `elements/${part(element)}/handlers/${part(handler)}`;

export async function router() {
  try {
    return await ask("GET", "router");
  } catch (error) {
    if (error.status !== 401) throw error;
    forgetToken();
    return ask("GET", "router");
  }
}
export const graph = (folded) => ask("GET", `graph?${folded.map((f) => `fold=${part(f)}`).join("&")}`);
export const element = (name) => ask("GET", `elements/${part(name)}`);
export const read = (name, handler) => ask("GET", handlerPath(name, handler));
export const write = (name, handler, value) => ask("PUT", handlerPath(name, handler), { value });
export const configuration = () => ask("GET", "configuration");
export const check = (text, signal) => ask("POST", "check", { configuration: text }, signal);
export const plan = (text, signal) => ask("POST", "plan", { configuration: text }, signal);
export const swap = (text) => ask("POST", "swap", { configuration: text });

export const beginTrace = (filter, packets) => ask("POST", "traces", { filter, packets });
export const trace = (name) => ask("GET", `traces/${name}`);
export const endTrace = (name) => ask("DELETE", `traces/${name}`);

/** Calls `on.reading`, `on.trouble` or `on.end` for each event. The browser connects again by itself. */
export function watch(on) {
  const source = new EventSource("/api/events");
  source.addEventListener("reading", (event) => on.reading(JSON.parse(event.data)));
  source.addEventListener("trouble", (event) => on.trouble(JSON.parse(event.data).error.message));
  source.addEventListener("end", () => {
    source.close();
    on.end();
  });
  source.addEventListener("error", () => on.trouble("the server does not answer"));
}
