"""The page in headless Chromium: no errors, sorting and filtering, both themes, a phone, paper."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is missing (extra report)")
pytest.importorskip("jinja2", reason="jinja2 is missing (extra report)")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing (extra dev)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no chromium is installed", allow_module_level=True)

from ssme import SSME, ScoreTable  # noqa: E402
from ssme.html_report import scores_page, sweep_page  # noqa: E402

from .test_html_report import HOSTILE, make_table, sweep_frames  # noqa: E402

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    table: ScoreTable = make_table([*HOSTILE, *(f"model-{m:02d}" for m in range(20))])
    model = SSME(random_state=0, n_draws=30).fit(table)
    page = scores_page(model, table, ["accuracy", "ece"], groups=["g<u>"], warnings=["<b>careful</b>"])
    (folder / "estimates.html").write_text(page, encoding="utf-8")
    (folder / "sweep.html").write_text(sweep_page(**sweep_frames()), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, folder: Path) -> Iterator[Open]:
    """Open a page from disk; at the end nothing may have been said on the console or asked of the network."""
    troubles: list[str] = []
    opened = []

    def open_it(name: str = "estimates", width: int = 1200, scheme: str = "light") -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else
                troubles.append(request.url))  # fmt: skip
        page.goto((folder / f"{name}.html").as_uri())
        opened.append(page)
        return page

    yield open_it
    for page in opened:
        page.close()
    assert troubles == []


def column(page: Any, n: int) -> list[str]:
    return page.locator(f"#estimates-table tbody tr:visible td:nth-child({n})").all_inner_texts()


def heading(page: Any, name: str) -> Any:
    return page.locator("#estimates-table th", has=page.get_by_role("button", name=name, exact=True))


def test_sorting(open_page: Open) -> None:
    page = open_page()
    before = sorted(column(page, 2))
    heading(page, "estimate").locator("button").click()
    values = np.array(column(page, 3), dtype=float)
    assert (np.diff(values) >= 0).all() and heading(page, "estimate").get_attribute("aria-sort") == "ascending"
    heading(page, "estimate").locator("button").press("Enter")
    assert (np.diff(np.array(column(page, 3), dtype=float)) <= 0).all()
    heading(page, "metric").locator("button").click()
    assert column(page, 1) == ["accuracy"] * 26 + ["ece"] * 26 and sorted(column(page, 2)) == before
    assert heading(page, "estimate").get_attribute("aria-sort") is None


def test_filtering(open_page: Open) -> None:
    page = open_page()
    field = page.locator("#estimates-table-filter")
    field.fill("ECE model-1")
    assert column(page, 2) == [f"model-{m}" for m in range(10, 20)] and set(column(page, 1)) == {"ece"}
    assert page.locator("output[for=estimates-table-filter]").inner_text() == "10 of 52 rows"
    field.fill("<script>")
    assert set(column(page, 2)) == {HOSTILE[0]}
    field.fill("")
    assert len(column(page, 2)) == 52


def luminance(colour: str) -> float:
    channels = np.array([float(c) for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_can_be_read(open_page: Open, scheme: str) -> None:
    page = open_page(scheme=scheme)

    def style(selector: str, name: str) -> str:
        script = "(e, n) => getComputedStyle(e)[n]"
        return str(page.locator(selector).first.evaluate(script, name))

    paper = style("body", "backgroundColor")
    assert (luminance(paper) < 0.05) == (scheme == "dark")
    for selector in ("body", "figcaption", "dt", "footer", ".warnings h2"):
        assert contrast(style(selector, "color"), paper) >= 4.5, selector
    assert contrast(style("#intervals svg text", "fill"), paper) >= 4.5
    assert contrast(style("#roc svg path[style*='--c0']", "stroke"), paper) >= 3
    assert contrast(style(".s90", "color"), _over(style(".s90", "backgroundColor"), paper)) >= 4.5


def _over(colour: str, paper: str) -> str:
    """An rgba colour on an opaque one."""
    red, green, blue, alpha = (float(c) for c in colour[colour.index("(") + 1 : -1].split(","))
    below = [float(c) for c in paper[paper.index("(") + 1 : -1].split(",")]
    return f"rgb({', '.join(str(alpha * a + (1 - alpha) * b) for a, b in zip((red, green, blue), below, strict=True))})"


@pytest.mark.parametrize("name", ["estimates", "sweep"])
@pytest.mark.parametrize("width", [390, 1200])
def test_no_sideways_scroll(open_page: Open, name: str, width: int) -> None:
    page = open_page(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = "e => { const b = e.getBoundingClientRect(); return b.right > innerWidth + 1 || b.left < -1; }"
    for element in page.locator("h2, article, figure, figure svg, .scroll, .filter input").element_handles():
        assert not element.evaluate(outside)


def test_labels_of_a_forest_plot_do_not_touch(open_page: Open) -> None:
    page = open_page(width=390)
    boxes = page.locator("#intervals svg").first.evaluate(
        "s => [...s.querySelectorAll('[id*=\"ytick\"] text')].map(t => { const b = t.getBoundingClientRect(); "
        "return [b.top, b.bottom]; })"
    )
    tops = np.array(sorted(boxes))
    assert len(tops) == 26 and (tops[1:, 0] >= tops[:-1, 1] - 1.0).all()


def test_paper_is_light_and_shows_every_row(open_page: Open) -> None:
    page = open_page(width=794, scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    paper = page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    assert luminance(paper) > 0.9
    assert page.locator("#estimates-table-filter").is_hidden()
    hidden = "e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1"
    for table in page.locator(".scroll").element_handles():
        assert not table.evaluate(hidden)
    assert page.pdf(format="A4").startswith(b"%PDF")
