"""Every public name is on a page of the reference; its docstring describes its use."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest
from numpydoc import docscrape, validate

from sklearn_pate import PATEClassifier

PACKAGE = "sklearn_pate"
PUBLIC_PACKAGES = [
    "accounting",
    "accounting.bounds",
    "baselines",
    "datasets",
    "distributed",
    "inspection",
    "mechanisms",
    "model_selection",
    "publication",
    "students",
]
PAGES = sorted((Path(__file__).parent.parent / "docs" / "api").glob("*.rst"))
DIRECTIVE = re.compile(r"\.\. (?P<name>[\w-]+)::\s*(?P<argument>.*)")


def resolve(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def exported():
    """List where public names are: a name that two modules export is listed twice."""
    paths = [
        f"{module}.{name}"
        for module in [
            PACKAGE,
            *(f"{PACKAGE}.{package}" for package in PUBLIC_PACKAGES),
        ]
        for name in importlib.import_module(module).__all__
    ]
    return [path for path in paths if not inspect.ismodule(resolve(path))]


def listed(page):
    """List what a page documents: entries of autosummaries, and data directives."""
    found, module, directive = [], None, None
    for line in page.read_text().splitlines():
        match = DIRECTIVE.match(line)
        if match:
            directive, argument = match["name"], match["argument"]
            if directive == "currentmodule":
                module = argument
            elif directive == "data":
                found.append(f"{module}.{argument}")
        elif directive == "autosummary" and re.fullmatch(r"   [\w.]+", line):
            name = line.strip()
            found.append(name if name.startswith(PACKAGE) else f"{module}.{name}")
    return found


def methods(classes):
    """List the public methods of public classes that were written here."""
    found = {}
    for path in classes:
        for name, method in inspect.getmembers(resolve(path), inspect.isroutine):
            is_ours = (getattr(method, "__module__", None) or "").startswith(PACKAGE)
            if is_ours and not name.startswith("_"):
                found[method.__qualname__] = method
    return found


PUBLIC = exported()
NAMES = {id(resolve(path)): path for path in PUBLIC}.values()  # one path each
FUNCTIONS = [path for path in NAMES if inspect.isfunction(resolve(path))]
CLASSES = [path for path in NAMES if inspect.isclass(resolve(path))]
METHODS = methods(CLASSES)
ENTRIES = [(page.name, entry) for page in PAGES for entry in listed(page)]


def described(text):
    """List the parameters that a docstring describes."""
    return [
        name.strip("* ")
        for parameter in text["Parameters"]
        for name in parameter.name.split(",")
    ]


def sections(path):
    name = resolve(path)
    if inspect.isclass(name):
        return docscrape.ClassDoc(name, config={"show_class_members": False})
    return docscrape.FunctionDoc(name)


@pytest.mark.parametrize("path", NAMES)
def test_a_public_name_is_on_one_page_of_the_reference(path):
    name = resolve(path)
    entries = [(page, entry) for page, entry in ENTRIES if resolve(entry) is name]
    assert len(entries) == 1, f"{path} belongs on one page of docs/api: {entries}"
    [(page, entry)] = entries
    assert entry in PUBLIC, f"{page} lists {entry}, and its module does not export it"


@pytest.mark.parametrize("path", FUNCTIONS + CLASSES)
def test_the_docstring_of_a_public_name_has_an_example_that_runs(path):
    text = "\n".join(sections(path)["Examples"])
    assert doctest.DocTestParser().get_examples(text), f"{path} has no doctest"


@pytest.mark.parametrize("path", FUNCTIONS + CLASSES)
def test_the_docstring_of_a_public_name_describes_all_that_it_takes(path):
    if inspect.isclass(resolve(path)) and issubclass(resolve(path), BaseException):
        return  # raised by the package, never by a user
    assert described(sections(path)) == list(
        inspect.signature(resolve(path)).parameters
    )


@pytest.mark.parametrize("path", FUNCTIONS)
def test_the_docstring_of_a_public_function_describes_its_result(path):
    checked = validate.Validator(docscrape.get_doc_object(resolve(path)))
    assert bool(sections(path)["Returns"]) == checked.method_returns_something


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_docstring_of_a_public_method_describes_all_that_it_takes(method):
    taken = [name for name in inspect.signature(method).parameters if name != "self"]
    assert described(docscrape.FunctionDoc(method)) == taken


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_docstring_of_a_public_method_describes_its_result(method):
    checked = validate.Validator(docscrape.get_doc_object(method))
    assert bool(docscrape.FunctionDoc(method)["Returns"]) == (
        checked.method_returns_something
    )


def test_every_parameter_has_one_purpose():
    doc = inspect.getdoc(PATEClassifier)
    listed = doc[doc.index("by purpose:") : doc.index("Parameters\n---")]
    assert sorted(re.findall("`([a-z_]+)`", listed)) == sorted(
        PATEClassifier().get_params(deep=False)
    )
