// The report of a group, made from the journal: the data for its page, its JSON and its mail.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"
#include "report/digest.h"
#include "report/group_report.h"
#include "report/overview.h"

namespace trainyard::report {

/// The input that the reports of all groups share.
struct ReportBasis {
  ReportHead head;
  std::vector<journal::SampleRow> samples;
};
Result<ReportBasis> read_basis(journal::JournalReader& reader);

/// The facts about a group whose report was made.
struct GroupFigures {
  GroupDigest digest;
  NumbersOfGroup numbers;
};

/// Hands the report of a group to `use`, for which alone it lives. Holds the attempts and ids of
/// the group in memory, and streams everything else.
Result<GroupFigures> with_report(journal::JournalReader& reader, const journal::GroupRow& group,
                                 const ReportBasis& basis,
                                 std::move_only_function<Result<void>(GroupReport&)> use);

}  // namespace trainyard::report
