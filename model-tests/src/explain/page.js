"use strict";
(() => {
  const all = [...document.querySelectorAll("details.pass")];
  const show = (pass) => { pass.open = true; pass.querySelector("summary").focus(); pass.scrollIntoView({ block: "nearest" }); };
  const named = () => { const pass = document.getElementById(location.hash.slice(1)); if (all.includes(pass)) show(pass); };
  addEventListener("hashchange", named);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !["j", "k"].includes(event.key)) return;
    const at = all.findIndex((pass) => pass.contains(document.activeElement));
    const next = all[at + (event.key === "j" ? 1 : -1)];
    if (next) show(next);
  });
  named();
  document.documentElement.dataset.ready = String(all.length);
})();
