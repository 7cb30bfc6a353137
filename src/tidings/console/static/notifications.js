// Live notifications. The stream signals new ones and the server renders them, so that they look like those of the
// first load. The details of an item are fetched when it is opened.
import { localTimes } from "./menu.js";

const list = document.getElementById("told");
const words = document.getElementById("live-words");
const state = document.getElementById("live");
const whose = list.dataset.subscriber ?? "";
let last = Number(list.dataset.last);
let unread = Number(document.getElementById("unread").textContent.replaceAll(",", ""));
let fetching = false;
let wanted = last;

function address(path, given) {
  const query = new URLSearchParams(given);
  if (whose) query.set("subscriber", whose);
  return `${path}?${query}`;
}

async function fragment(path, given) {
  const answer = await fetch(address(path, given), { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) throw new Error(`${answer.status}`);
  const made = document.createElement("template");
  made.innerHTML = await answer.text();
  return made.content;
}

function counted(number) {
  document.getElementById("unread").textContent = unread.toLocaleString("en");
  document.getElementById("last").textContent = last.toLocaleString("en");
  document.getElementById("upto").value = String(last);
  document.getElementById("all-read").disabled = unread === 0;
  document.getElementById("nothing").hidden = list.children.length > 0;
  const first = list.querySelector(".called, .reason")?.textContent ?? "";
  document.getElementById("arrived").textContent = number === 1 ? `New: ${first}` : `${number} new notifications`;
}

/** One request at a time; the next one includes what arrived meanwhile. */
async function fetchNew() {
  if (fetching) return;
  fetching = true;
  try {
    while (wanted > last) {
      const found = await fragment("/console/notifications/new", { after: String(last) });
      const items = [...found.querySelectorAll(".tiding")];
      if (items.length === 0) break;
      for (const item of items) item.classList.add("arrived");
      localTimes(found);
      last = Math.max(...items.map((item) => Number(item.dataset.sequence)));
      list.prepend(found);
      unread += items.length;
      counted(items.length);
    }
  } catch {
    said("off", "could not be loaded; reload the page");
  } finally {
    fetching = false;
  }
}

function said(kind, text) {
  state.hidden = false;
  state.className = `live quiet ${kind}`;
  words.textContent = text;
}

function listen() {
  const stream = new EventSource(address("/v1/notifications/stream", { after: String(last) }));
  stream.onopen = () => said("on", "live");
  stream.onerror = () => said("off", stream.readyState === EventSource.CLOSED ? "not live" : "connecting");
  stream.onmessage = (event) => {
    wanted = Math.max(wanted, Number(event.lastEventId));
    fetchNew();
  };
}

list.addEventListener("toggle", async (event) => {
  const item = event.target.closest(".tiding");
  const inside = item?.querySelector(".inside");
  if (!event.target.open || !inside || inside.dataset.fetched) return;
  inside.dataset.fetched = "yes";
  try {
    inside.replaceChildren(await fragment(`/console/notifications/${item.dataset.sequence}/inside`, {}));
  } catch {
    delete inside.dataset.fetched; // the link in its place leads to the same page
  }
}, true);

if (list.dataset.live === "yes") listen();
