"""Take the pictures of reports in docs/guides/report.md and README, in headless Chromium.

Usage: python -m benchmarks.pages.report_screenshots RELEASE PROFILE. RELEASE is a folder with the phrases that `NGrams`
released from reddit_posts. PROFILE is the folder that the example of docs/guides/profile.md saves. Either may be
`none`. The program needs playwright, pillow, chromium and pdftoppm (`make browser`).
"""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
TARGET = Path(__file__).resolve().parents[2] / "docs" / "guides" / "images"
PHONE = {"width": 390, "height": 844}
COLOURS = 160


def main() -> None:
    """Open the reports, and save screenshots."""
    from playwright.sync_api import sync_playwright

    pages = [None if folder == "none" else Path(folder).resolve() / "report.html" for folder in sys.argv[1:]]
    TARGET.mkdir(exist_ok=True)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for page, taken in zip(pages, (of_release, of_profile), strict=True):
            if page is not None:
                taken(browser, page)
        browser.close()


def of_release(browser, page):
    """Save the pictures of a report of phrases."""
    top = used(browser, page, "light")
    save("report-light.png", [top.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 1190})])
    save("report-holders.png", [seen(top, "#needed", "#pictures")])
    dark = used(browser, page, "dark")
    save("report-dark.png", [seen(dark, "#explorer", "#completions")])
    phone = used(browser, page, "light", **PHONE)
    save("report-paper.png", paper(top))
    save("report-phone.png", [phone_at(phone, name) for name in ("#top", "#needed", "#explorer", "#completions")])


def of_profile(browser, page):
    """Save the picture of a report of a profile."""
    save("report-profile.png", [seen(opened(browser, page, "light"), "#top", "#summary")])


def opened(browser, page, scheme, width=1280, height=900):
    """Open a report, and return its page when it is ready."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    return tab


def used(browser, page, scheme, width=1280, height=900):
    """Return a page after a search, a choice, and typing the beginning of a phrase."""
    tab = opened(browser, page, scheme, width, height)
    tab.fill("#search", "thank you")
    tab.click("#list .item >> nth=11")
    tab.fill("#prompt", "thank you for")
    tab.wait_for_timeout(300)
    tab.evaluate("document.activeElement.blur(), window.scrollTo(0, 0)")
    return tab


def seen(tab, first, last):
    """Return a screenshot of consecutive sections, from the first to the last."""
    boxes = [tab.locator(name).bounding_box() for name in (first, last)]
    height = boxes[1]["y"] + boxes[1]["height"] - boxes[0]["y"]
    return tab.screenshot(full_page=True, clip={"x": 0, "y": boxes[0]["y"], "width": 1280, "height": height})


def paper(tab):
    """Return the first page of the printed report, and the last page, which is signed."""
    with tempfile.TemporaryDirectory() as folder:
        tab.pdf(path=f"{folder}/report.pdf", prefer_css_page_size=True)
        subprocess.run(["pdftoppm", "-r", "70", "-png", f"{folder}/report.pdf", f"{folder}/page"], check=True)
        printed = sorted(Path(folder).glob("page*.png"))
        return [printed[place].read_bytes() for place in (0, -1)]


def phone_at(tab, name):
    """Return a screenshot of a section on a phone."""
    tab.evaluate("name => document.querySelector(name).scrollIntoView({behavior: 'instant'})", name)
    tab.wait_for_timeout(200)
    return tab.screenshot()


def save(name, shots):
    """Put pictures side by side and save them with few colours."""
    from PIL import Image

    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    gap = 24 if len(images) > 1 else 0
    width = sum(image.width + gap for image in images) - gap
    whole = Image.new("RGB", (width, max(image.height for image in images)), "#d8d4c8")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + gap
    whole.quantize(COLOURS, dither=Image.Dither.NONE).save(TARGET / name, optimize=True)
    print(f"{name}: {(TARGET / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
