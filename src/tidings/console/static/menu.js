// On every page: close the menu on narrow screens, show local times, and confirm destructive actions.
const menu = document.querySelector("details.menu");
const narrow = matchMedia("(max-width: 52rem)");

function fit() {
  if (menu) menu.open = !narrow.matches;
}

narrow.addEventListener("change", fit);
fit();

/** A time in the local time zone, with the date if it is not today. */
function local(moment) {
  const isToday = moment.toDateString() === new Date().toDateString();
  return moment.toLocaleString(undefined, isToday ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

/** Convert server times to local ones; the title keeps the full timestamp. */
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
