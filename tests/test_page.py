"""`index.html` of a bundle: complete, self-contained, and readable in a browser."""

import html
import json
import re
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from bundles import BUNDLES, BY_NAME, Bundle
from chromium import opened
from programs import require
from racks import ring_text
from tables import of_each
from valid_sites import valid
from waiting import PATIENCE, until

from generator.bundle.render import render
from generator.resources import ROOT
from generator.services.proxy import Proxy
from generator.services.web_ui import WebUi
from generator.site import Site

VOID = {"meta", "br", "hr", "img", "input", "link"}
CHROMIUM = (
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--enable-logging=stderr"),
)
SHOWN = ("lab-mesh", "rack-switch", "three-models")


class Page(HTMLParser):
    """The elements of a page; an element that is not closed, or closed twice, is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.update(filter(None, [found.get("id")]))
        self.links += filter(None, (found.get("href"), found.get("src")))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids.update(filter(None, [dict(attrs).get("id")]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(site: Site) -> str:
    return render(site, "")["index.html"].text


@of_each(BUNDLES)
def test_page_is_complete_and_self_contained(bundle: Bundle) -> None:
    """All that it links to is on it, or a file of the bundle, and it has what there is to know."""
    tree = render(bundle.site, "")
    text = tree["index.html"].text
    page = Page(text)
    assert [name for name, count in page.ids.items() if count > 1] == []
    own = {f"#{name}" for name in page.ids}
    assert {link for link in page.links if link.partition("#")[0] not in tree} <= own
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)\S+\.js", text)
    assert len(bundle.site.nodes) > 8 or len(text.encode()) <= 150_000
    for part in bundle.site.parts:
        assert part.model.served_name in page.text
        proxy = Proxy.of(bundle.site)
        assert (proxy.url if proxy else part.engine.api.url) in page.text
    if chat := WebUi.of(bundle.site):
        assert f"The chat page is at {chat.url}." in page.text
    ports = page.text.partition("PortOfOn")[2].partition("Files")[0].split()
    for node in bundle.site.nodes:
        assert node.ssh in page.text
        for service in bundle.site.services.values():
            for name, port in service.listeners(node).items():
                assert f"{port}{name}" in "".join(ports)
    for job in bundle.site.jobs:
        assert f"{job.folder}/start.sh" in page.text
    for cable in bundle.site.cables:
        assert f"fails-cable_{cable.number}" in page.ids or not bundle.site.parts


@of_each(BUNDLES)
def test_each_step_of_the_setup_is_whole(bundle: Bundle) -> None:
    """Each item of the runbook is there up to its commands or sub-items, without markup."""
    tree = render(bundle.site, "")
    page = " ".join(Page(tree["index.html"].text).text.split())
    setup = tree["README.md"].text.partition("\n## Set up\n")[2].partition("\n## ")[0]
    for item in setup.split("\n- [ ] ")[1:]:
        own = re.split(r"\n(?:\n|  - |- |#)", item)[0]
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", own)
        words = " ".join(html.unescape(re.sub(r"`|\*\*|\\", "", plain)).split())
        assert words in re.sub(r"`|\*\*|\\", "", page), words


def test_eight_nodes_stay_small() -> None:
    site = valid(ring_text(8)).site
    assert len(page_of(site).encode()) <= 150_000


def test_hostile_words_are_text() -> None:
    text = (ROOT / "sites/more/three-models.yaml").read_text()
    hostile = "<script>alert(1)</script> & `code` [a](javascript:b)"
    site = valid(re.sub(r"description: .*", f"description: '{hostile}'", text)).site
    page = page_of(site)
    assert page.count("<script>") == 1
    assert html.escape(hostile, quote=False) in page


# In Chromium: each page in a narrow and in a wide frame, which reports what it found.
FRAMES = """\
<!DOCTYPE html>
<meta charset="utf-8">
%s
<script>
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (part) => (part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
function contrast(one, other) {
  const [dark, bright] = [luminance(rgb(one)), luminance(rgb(other))].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}
function backOf(view, element) {
  for (; element; element = element.parentElement) {
    const back = view.getComputedStyle(element).backgroundColor;
    if (rgb(back)[3] !== 0) return back;
  }
  return "rgb(255, 255, 255)";
}
function faint(document, view) {
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || ["SCRIPT", "STYLE", "title", "desc", "style"].includes(element.tagName)) continue;
    const style = view.getComputedStyle(element);
    const isBadge = element.classList.contains("badge");
    const drawn = element instanceof view.SVGElement;
    const below = drawn && isBadge ? element.previousElementSibling : element;
    const back = drawn
      ? view.getComputedStyle(isBadge ? below : document.querySelector("svg .frame")).fill
      : backOf(view, element);
    const ratio = contrast(drawn ? style.fill : style.color, back);
    if (ratio < 4.5) found.push(`${element.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return found;
}
function check(frame) {
  const { contentDocument: document, contentWindow: view } = frame;
  const root = document.scrollingElement;
  const lines = [...document.querySelectorAll(".picture a")].map((a) => a.getAttribute("href"));
  const cable = document.querySelector('.picture a[href="#fails-cable_1"]');
  cable.dispatchEvent(new view.MouseEvent("click", { bubbles: true, cancelable: true }));
  return {
    faint: faint(document, view),
    wide: root.scrollWidth - root.clientWidth,
    status: document.querySelector("[role=status]").textContent,
    marked: document.querySelectorAll("tr.shown").length,
    links: lines.length,
    dark: rgb(view.getComputedStyle(document.body).backgroundColor)[0] < 128,
    rows: document.querySelectorAll("#failures ~ table tr").length,
  };
}
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(check);
  document.body.innerHTML = "";
  document.body.textContent = JSON.stringify(found);
});
</script>
"""


def browse(work: Path, *options: str) -> subprocess.CompletedProcess[str]:
    require("chromium")
    command = [*CHROMIUM, f"--user-data-dir={work / 'profile'}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_page_in_chromium(scheme: str, tmp_path: Path) -> None:
    """Nothing is on the console, every text can be read, and a cable tells what it takes."""
    pages = [(BY_NAME[name].folder / "index.html").read_text() for name in SHOWN]
    frames = "".join(
        f'<iframe style="width: {width}px; height: 900px" srcdoc="{html.escape(page)}"></iframe>'
        for page in pages
        for width in (400, 1200)
    )
    file = tmp_path / "frames.html"
    file.write_text(FRAMES % frames)
    setting = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    done = browse(tmp_path, setting, "--dump-dom", f"file://{file}")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    shown = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert shown, done.stderr
    found = json.loads(html.unescape(shown[1]))
    assert len(found) == 2 * len(SHOWN)
    for seen in found:
        assert seen["faint"] == []
        assert seen["wide"] <= 0
        assert seen["dark"] is (scheme == "dark")
        assert seen["status"].startswith("Without cable 1, still answers: ")
        assert seen["marked"] == 1
        assert seen["links"] >= 4
        assert seen["rows"] > 5


def test_keyboard(tmp_path: Path) -> None:
    """With tab and enter alone, a cable in the picture tells what it takes."""
    require("chromium")
    page = BY_NAME["rack-switch"].folder / "index.html"
    command = [*CHROMIUM, f"--user-data-dir={tmp_path / 'profile'}"]
    with opened(command, f"file://{page}") as browser:
        until(lambda: browser.value("document.readyState") == "complete")
        focused = "document.activeElement.getAttribute('href') || ''"

        def tabbed() -> bool:
            browser.press("Tab")
            return bool(browser.value(focused) == "#fails-cable_1")

        # A browser that has just started takes no keys yet.
        until(tabbed)
        assert browser.value("document.activeElement.matches(':focus-visible')")
        browser.press("Enter")
        told = browser.value("document.querySelector('[role=status]').textContent")
        assert told.startswith("Without cable 1, still answers: ")


def test_clients_ask_the_proxy() -> None:
    page = (BY_NAME["golden-direct-proxy"].folder / "index.html").read_text()
    assert '<td data-head="Address"><code>http://10.0.0.11:8090/v1</code>' in page


def test_page_is_printed(tmp_path: Path) -> None:
    out = tmp_path / "page.pdf"
    page = BY_NAME["rack-switch"].folder / "index.html"
    browse(tmp_path, f"--print-to-pdf={out}", "--no-pdf-header-footer", f"file://{page}")
    assert out.read_bytes().startswith(b"%PDF-")
