// A dropped or chosen file replaces the text; its extension selects the kind.
const text = document.getElementById("text");
const drop = document.getElementById("drop");
const kind = document.getElementById("kind");
const file = document.getElementById("file");
const said = document.getElementById("file-said");
const LARGEST = 10 * 1024 * 1024;
const KINDS = {
  json: "application/json", jsonl: "application/jsonl", ndjson: "application/jsonl", xml: "application/xml",
  ttl: "text/turtle", nt: "application/n-triples", rdf: "application/rdf+xml", jsonld: "application/ld+json",
  trig: "application/trig", nq: "application/n-quads", rss: "application/rss+xml", atom: "application/atom+xml",
  jsonfeed: "application/feed+json",
};

async function take(given) {
  if (given.size > LARGEST) {
    said.textContent = `${given.name} is too large: at most 10 MB here. Use tidings publish instead.`;
    return;
  }
  text.value = await given.text();
  kind.value = KINDS[given.name.split(".").pop().toLowerCase()] ?? "";
  said.textContent = `${given.name}, ${given.size.toLocaleString("en")} bytes`;
  text.focus();
}

for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    drop.classList.add("over");
  });
}
drop.addEventListener("dragleave", (event) => {
  if (!drop.contains(event.relatedTarget)) drop.classList.remove("over");
});
drop.addEventListener("drop", (event) => {
  if (event.dataTransfer.files.length === 0) return;
  event.preventDefault();
  drop.classList.remove("over");
  take(event.dataTransfer.files[0]);
});
file.addEventListener("change", () => file.files.length && take(file.files[0]));
document.getElementById("file-row").hidden = false;
