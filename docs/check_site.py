"""Whether the site stands by itself, and whether pages look as pages: asked of Chromium, without a network.

    check_site.py SITE      screenshots are left in SITE/../site-screenshots
"""

import pathlib
import re
import shutil
import subprocess
import sys

from PIL import Image

WIDTH, HEIGHT = 1280, 900
PAGES = ["index.html", "tutorial.html", "reference/python.html"]
# Of the media feature prefers-color-scheme, as Chromium counts them.
SCHEMES = ["dark", "light"]


def main(site):
    site = pathlib.Path(site).resolve()
    foreign = [
        f"{page.relative_to(site)}: {url}"
        for page in site.rglob("*.html")
        for url in re.findall(r'<(?:script|link|img)\b[^>]*?(?:src|href)="(https?://[^"]+)"', page.read_text())
        if not url.startswith("https://github.com/windrow-rs")
    ]
    assert not foreign, "loaded from elsewhere:\n" + "\n".join(foreign)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("there is no Chromium (Debian: apt-get install chromium): pages were not looked at", file=sys.stderr)
        return
    pictures = site.parent / "site-screenshots"
    pictures.mkdir(exist_ok=True)
    for page in PAGES:
        for scheme in SCHEMES:
            look_at(browser, site / page, scheme, pictures / f"{page.replace('/', '-')}-{scheme}.png")
    print(f"{len(PAGES)} pages look as pages, dark and light; see {pictures}")


def look_at(browser, page, scheme, picture):
    picture.unlink(missing_ok=True)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000"]
    options.append(f"--blink-settings=preferredColorScheme={SCHEMES.index(scheme)}")
    options += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}"]
    subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True, timeout=120)
    image = Image.open(picture).convert("RGB")
    assert image.size == (WIDTH, HEIGHT), image.size
    header = image.crop((0, 0, WIDTH, 40))
    green = share(header, lambda red, green, blue: green > red + 40 and green > blue + 20)
    assert green > 0.8, f"{page}: the header is not there: {green:.2f}"
    body = image.crop((300, 60, 1000, HEIGHT))
    dark = share(body, lambda red, green, blue: max(red, green, blue) < 140)
    text = dark if scheme == "light" else 1 - dark
    assert 0.01 < text < 0.4, f"{page}, {scheme}: {text:.3f} of the page is text"


def share(image, wanted):
    counts = image.getcolors(WIDTH * HEIGHT)
    return sum(count for count, colour in counts if wanted(*colour)) / (image.width * image.height)


if __name__ == "__main__":
    main(*sys.argv[1:])
