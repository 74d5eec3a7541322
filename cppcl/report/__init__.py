"""Reports: one page that opens offline, with CSV and PNG files beside it."""

from cppcl.report.data import (
    LearnedFeatures,
    MethodResult,
    ProtocolResult,
    QueryResult,
    QueryScores,
    ReportData,
    ResultGrid,
    RetrievedPicture,
    StageTime,
)
from cppcl.report.published import PublishedScores
from cppcl.report.render import render_report

__all__ = [
    "LearnedFeatures",
    "MethodResult",
    "ProtocolResult",
    "PublishedScores",
    "QueryResult",
    "QueryScores",
    "ReportData",
    "ResultGrid",
    "RetrievedPicture",
    "StageTime",
    "render_report",
]
