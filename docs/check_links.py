"""Check every link within the site: ``python docs/check_links.py docs/build``."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links of a page, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links = set()
        self.anchors = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        """Collect links and anchors."""
        found = dict(attributes)
        self.links.update(found[one] for one in ("href", "src") if found.get(one))
        self.anchors.update(found[one] for one in ("id", "name") if found.get(one))


def broken_links(site):
    """Find links of a site that lead nowhere."""
    pages = {
        path.resolve(): Page(path)
        for path in site.rglob("*.html")
        if "_static" not in path.parts  # the theme's own templates
    }
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            place = path.parent / unquote(target.path) if target.path else path
            place = place.resolve()
            missing = not place.is_file()
            if not missing and target.fragment and place in pages:
                missing = unquote(target.fragment) not in pages[place].anchors
            if missing:
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


def main():
    """Print broken links; exit with 1 if there are any."""
    broken = broken_links(Path(sys.argv[1]))
    print("\n".join(broken) or "All links within the site are valid.")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
