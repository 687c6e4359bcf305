"""Every public name is on a page of the reference; its docstring describes its use."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

from numpydoc import docscrape, validate

from sklearn_pate import PATEClassifier

PACKAGE = "sklearn_pate"
PUBLIC_PACKAGES = [
    "accounting",
    "accounting.bounds",
    "learners",
    "datasets",
    "distributed",
    "inspection",
    "mechanisms",
    "metrics",
    "model_selection",
    "outcomes",
    "publication",
    "students",
    "testing",
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
    """Read the sections of a docstring."""
    name = resolve(path)
    if inspect.isclass(name):
        return docscrape.ClassDoc(name, config={"show_class_members": False})
    return docscrape.FunctionDoc(name)


DOCS = {path: sections(path) for path in FUNCTIONS + CLASSES}


def taken(callable_):
    """List the parameters of a function, a method or a class."""
    return [name for name in inspect.signature(callable_).parameters if name != "self"]


def test_every_public_name_is_on_one_page_of_the_reference_where_it_is_exported():
    entries = {
        path: [(page, one) for page, one in ENTRIES if resolve(one) is resolve(path)]
        for path in NAMES
    }
    misplaced = {
        path: found
        for path, found in entries.items()
        if len(found) != 1 or found[0][1] not in PUBLIC
    }
    assert misplaced == {}


def test_the_docstring_of_a_public_name_has_an_example_that_runs():
    texts = {path: "\n".join(doc["Examples"]) for path, doc in DOCS.items()}
    examples = doctest.DocTestParser().get_examples
    assert [path for path, text in texts.items() if not examples(text)] == []


def test_the_docstring_of_a_public_name_describes_all_that_it_takes():
    # Exceptions are raised by the package, never by a user.
    made = {
        path: resolve(path)
        for path in DOCS
        if path in FUNCTIONS or not issubclass(resolve(path), BaseException)
    }
    differ = [
        path for path, name in made.items() if described(DOCS[path]) != taken(name)
    ]
    assert differ == []


def test_the_docstring_of_a_public_method_describes_all_that_it_takes():
    differ = [
        name
        for name, method in METHODS.items()
        if described(docscrape.FunctionDoc(method)) != taken(method)
    ]
    assert differ == []


def test_the_docstring_of_a_public_function_or_method_describes_its_result():
    returning = METHODS | {path: resolve(path) for path in FUNCTIONS}
    differ = [
        name
        for name, function in returning.items()
        if bool(docscrape.FunctionDoc(function)["Returns"])
        != validate.Validator(
            docscrape.get_doc_object(function)
        ).method_returns_something
    ]
    assert differ == []


def test_every_parameter_has_one_purpose():
    doc = inspect.getdoc(PATEClassifier)
    listed = doc[doc.index("by purpose:") : doc.index("Parameters\n---")]
    assert sorted(re.findall("`([a-z_]+)`", listed)) == sorted(
        PATEClassifier().get_params(deep=False)
    )
