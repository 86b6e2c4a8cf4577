"use strict";
// Copying needs a script; without one the buttons stay hidden and the text can be selected by hand.
function copied(button) {
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}
function selectText(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", () => {
    const fallback = () => { selectText(source); if (document.execCommand("copy")) { copied(button); } };
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(source.textContent).then(() => copied(button), fallback);
    } else {
      fallback();
    }
  });
}
// A link from the table opens the audit it leads to.
function openTarget() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}
window.addEventListener("hashchange", openTarget);
openTarget();
