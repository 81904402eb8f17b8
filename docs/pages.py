"""Which pages the site has: a hook of mkdocs, see `mkdocs.yml`.

Pages keep their places in the repository, so that a link leads to the same page there and here.
What is only in the source becomes pages of its own: the reference, the addresses of the web API,
and lists of the folders that pages link to.
"""

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "sureshot"
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LOG.md")
PARTS = ("docs", "results", "recipes", "plans")  # folders that go in as they are
KINDS = (".md", ".png", ".svg", ".toml", ".csv", ".json")
FOLDERS = ("recipes", "recipes/published", "plans", "tests/faults")  # pages that list their files
_LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """List the pages of results in the navigation."""
    found = sorted((ROOT / "results").rglob("*.md"), key=lambda page: (len(page.parts), page))
    pages = [{_title(page): page.relative_to(ROOT).as_posix()} for page in found]
    for part in config.nav or []:
        if "Results" in part:
            part["Results"] = pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the site, in place of those of ``docs`` alone."""
    kept = [file for file in files if not file.src_uri.endswith((".py", ".pyc", *KINDS))]
    found = Files([])
    for file in kept:  # those of the theme
        found.append(file)
    paths = [ROOT / name for name in DOCUMENTS]
    for part in PARTS:
        paths += sorted((ROOT / part).rglob("*"))
    paths += _linked(path for path in paths if path.suffix == ".md")
    paths += [path for folder in FOLDERS for path in _listed(ROOT / folder)]
    for path in dict.fromkeys(paths):
        if path.is_file() and (path.suffix in KINDS or not path.is_relative_to(ROOT / "docs")):
            place = path.relative_to(ROOT).as_posix()
            found.append(_file(config, place, abs_src_path=str(path)))
    for place, text in _generated():
        found.append(_file(config, place, content=text))
    return found


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to folders lead to their lists; the long log stays out of the search."""
    if page.file.src_uri == "LOG.md":
        page.meta["search"] = {"exclude": True}
    here = posixpath.dirname(page.file.src_uri)

    def listed(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[1]))
        if target in FOLDERS:
            return f"]({link[1].rstrip('/')}/index.md{link[2] or ''})"
        return link[0]

    return _LINK.sub(listed, markdown)


def _file(config: MkDocsConfig, place: str, **held: str) -> File:
    level = InclusionLevel.NOT_IN_NAV if place.startswith("tests") else InclusionLevel.INCLUDED
    file = File.generated(config, place, inclusion=level, **held)
    if place == "README.md":
        file.dest_uri, file.url = "index.html", "./"
    return file


def _title(page: Path) -> str:
    heading = re.search(r"^# (.+)$", page.read_text("utf-8"), re.M)
    folder = page.parent.name
    title = heading[1] if heading else page.stem
    return title if folder in ("results", "trust", "figures") else f"{title} ({folder})"


def _linked(pages: Iterator[Path]) -> list[Path]:
    """Files elsewhere in the repository that pages link to: source, licences, tests."""
    found = []
    for page in pages:
        for link in _LINK.finditer(page.read_text("utf-8")):
            path = (page.parent / link[1]).resolve()
            if path.is_file() and path.is_relative_to(ROOT) and path.suffix != ".md":
                found.append(path)
    return found


def _generated() -> Iterator[tuple[str, str]]:
    """Pages that no file of the repository has: where each is, and its text."""
    for folder in FOLDERS:
        yield f"{folder}/index.md", _listing(ROOT / folder)
    for name, title, package in (
        ("python", "Python", SOURCE),
        ("library", "Library", SOURCE / "library"),
        ("research", "Research", SOURCE / "research"),
    ):
        yield f"reference/{name}.md", _reference(title, package)
    modules = (SOURCE / "models" / "systems").glob("[!_]*.py")
    systems = sorted(modules, key=lambda path: (path.stem == "base", path))
    lines = [f"::: sureshot.models.systems.{path.stem}\n" for path in systems]
    about = "One paper per module; recipes are in [recipes](../recipes/index.md)."
    yield "reference/systems.md", f"# Systems\n\n{about}\n\n" + "\n".join(lines)
    yield "reference/rest.md", _addresses()


def _listed(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".toml", ".py"))


def _listing(folder: Path) -> str:
    lines = [f"# {folder.relative_to(ROOT).as_posix()}", ""]
    for path in _listed(folder):
        text = path.read_text("utf-8")
        said = re.match(r"(?:# |\"\"\")(.+?)(?:\"\"\")?\n", text)
        lines.append(f"* [{path.name}]({path.name})" + (f": {said[1]}" if said else ""))
    return "\n".join(lines) + "\n"


def _reference(title: str, package: Path) -> str:
    """What a package gives by its stub, each by the place where it is defined."""
    name = ".".join(package.relative_to(SOURCE.parent).parts)
    lines = [f"# {title}", "", f"`import {name}` gives these names.", ""]
    described = [] if package == SOURCE else _names(SOURCE)
    for one in _names(package):
        short = one.rpartition(".")[2]
        lines.append(f"* [`{short}`](python.md#{one})" if one in described else f"::: {one}\n")
    return "\n".join(lines)


def _names(package: Path) -> list[str]:
    """Where each name of a package's stub is defined; packages below it have pages of their own."""
    name = ".".join(package.relative_to(SOURCE.parent).parts)
    tree = ast.parse((package / "__init__.pyi").read_text("utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return [f"{name}.{node.module}.{one.name}" for node in nodes for one in node.names]


def _addresses() -> str:
    """The addresses of the web API and their fields, from the OpenAPI of the server."""
    from fastapi import FastAPI

    from sureshot.web import jobs, media, routes

    app = FastAPI(title="Sureshot")
    for router in (routes.router, media.router, jobs.router):
        app.include_router(router)
    described = app.openapi()
    lines = ["# Addresses of the web API", "", "Made from the server's own description."]
    lines += ["[How to use them](../docs/api.md), [the fields of replies](../docs/json.md)."]
    for address, methods in described["paths"].items():
        for method, about in methods.items():
            lines += ["", f"## {method.upper()} `{address}`", ""]
            lines += [about.get("description") or about.get("summary", "")]
            fields = about.get("parameters", ())
            if fields:
                lines += ["", "| field | in | type | |", "|---|---|---|---|"]
            for field in fields:
                lines.append(_field(field))
    return "\n".join(lines) + "\n"


def _field(field: dict[str, Any]) -> str:
    schema = field.get("schema", {})
    kinds = [one.get("type") for one in schema.get("anyOf", [schema])]
    kind = " or ".join(kind for kind in kinds if kind and kind != "null")
    needed = "required" if field.get("required") else ""
    said = field.get("description", schema.get("description", "")).replace("|", "\\|")
    return (
        f"| `{field['name']}` | {field['in']} | {' '.join(filter(None, (kind, needed)))} | {said} |"
    )
