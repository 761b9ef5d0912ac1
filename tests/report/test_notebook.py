"""A report by itself: its short `repr`, its text, and its part of a notebook."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from everyorder import Report
from everyorder.harness.report import render
from tests.report.samples import ALL, CUT, ORDER, PINNED, PROVEN

HOSTILE = '</pre><script>alert("1")</script>\u202e&amp;'


class Parts(HTMLParser):
    """The tags of a page, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("report", ALL, ids=lambda report: report.verdict)
def test_a_report_renders_itself(report: Report) -> None:
    assert report.render() == render(report)
    assert report.render(width=50, verbose=True) == render(
        report, width=50, verbose=True
    )
    assert repr(report) == f"<Report of {report.scenario}: {report.verdict}>"


@pytest.mark.parametrize("report", ALL, ids=lambda report: report.verdict)
def test_a_notebook_shows_all_of_the_text_and_the_sentence_first(
    report: Report,
) -> None:
    page = report._repr_html_()
    parts = Parts(page)
    assert parts.tags == ["div", "p", "strong", "pre"]
    assert parts.open == []
    assert parts.text.split() == report.render().split()
    first = parts.text.strip().split("\n")[0]
    assert first.startswith(f"{report.scenario}: ")
    assert len(page) < len(report.render()) * 2 + 600


def test_names_and_values_are_escaped() -> None:
    steps = (HOSTILE, *ORDER.steps[1:])
    for report in (ORDER, PROVEN, CUT):
        hostile = replace(report, scenario=HOSTILE, steps=steps)
        page = hostile._repr_html_()
        assert Parts(page).tags == ["div", "p", "strong", "pre"]
        assert "<script" not in page
        assert page.replace("\n", "").isprintable()


def test_it_is_self_contained_and_takes_the_colours_around_it() -> None:
    page = PINNED._repr_html_()
    assert re.findall(r"https?:|url\(|<link|<style|class=|id=", page) == []
    assert re.findall(r"(?<![-\w])(?:color|background): (\w+)", page) == [
        "inherit",
        "none",
        "inherit",
    ]
    assert len({each._repr_html_().split(";")[0] for each in (PROVEN, ORDER, CUT)}) == 3
