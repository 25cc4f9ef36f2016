// The report of a group as one HTML page that needs nothing else: no network, no font, no other
// file. And the same data as JSON. Both are written piece by piece.
#pragma once

#include "base/result.h"
#include "report/group_report.h"
#include "report/sink.h"

namespace trainyard::report {

/// The maximum of a page, however many tasks there are; it says what it leaves out.
constexpr int kHtmlRowsMax = 5000;
constexpr int kHtmlFailuresMax = 500;

Result<void> write_html(GroupReport& report, Sink& sink);

/// Every task and every attempt.
Result<void> write_report_json(GroupReport& report, Sink& sink);

}  // namespace trainyard::report
