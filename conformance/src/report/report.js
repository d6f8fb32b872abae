const filter = document.getElementById("filter"), warnings = document.getElementById("warnings"), shown = document.getElementById("shown");
function apply() {
  const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0, all = 0;
  for (const row of document.querySelectorAll("[data-words]")) {
    const text = row.dataset.words.toLowerCase();
    const fits = words.every((word) => text.includes(word));
    const finding = row.classList.contains("finding");
    row.hidden = finding ? !fits || (!warnings.checked && row.classList.contains("warning")) : words.length > 0 && !fits;
    if (finding) { all += 1; count += row.hidden ? 0 : 1; }
  }
  shown.textContent = all ? `${count} of ${all} findings` : "";
}
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") { target.open = true; target.hidden = false; target.scrollIntoView(); }
}
filter.addEventListener("input", apply);
warnings.addEventListener("change", apply);
addEventListener("hashchange", reveal);
const first = document.querySelector(".finding[data-failed]");
if (first) first.open = true;
apply();
reveal();
