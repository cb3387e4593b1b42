// SPDX-License-Identifier: BSD-3-Clause
// The list of versions in the sidebar. Each version is a folder beside the others, and `versions.json` beside these folders
// lists their names (tools/site_versions.py). Without this file, for example for pages opened from disk, the list has only
// the current version.
document.addEventListener("DOMContentLoaded", async () => {
  const select = document.getElementById("seiche-versions");
  if (!select) return;
  const root = new URL(document.documentElement.dataset.content_root, window.location.href);
  let names;
  try {
    names = await (await fetch(new URL("../versions.json", root))).json();
  } catch {
    return;
  }
  const current = decodeURIComponent(root.pathname.split("/").at(-2));
  select.replaceChildren(...names.map((name) => new Option(name, name, false, name === current)));
  select.addEventListener("change", async () => {
    const page = window.location.pathname.slice(root.pathname.length);
    const folder = new URL(`../${encodeURIComponent(select.value)}/`, root);
    const found = await fetch(new URL(page, folder), { method: "HEAD" }).catch(() => null);
    window.location.href = found && found.ok ? new URL(page, folder) : folder;
  });
});
