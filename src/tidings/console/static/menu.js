// What every page has: the menu is closed on narrow screens, times are local, and what cannot be undone is asked about.
const menu = document.querySelector("details.menu");
const narrow = matchMedia("(max-width: 52rem)");

function fit() {
  if (menu) menu.open = !narrow.matches;
}

narrow.addEventListener("change", fit);
fit();

/** A time as the person's clock shows it; the day is said when it is not today. */
function local(moment) {
  const isToday = moment.toDateString() === new Date().toDateString();
  return moment.toLocaleString(undefined, isToday ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

/** Times of the server, made local; the whole of each is its title. */
export function localTimes(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.getTime())) {
      time.title = time.dateTime;
      time.textContent = local(moment);
    }
  }
}

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

localTimes(document);
