// The mail with the reports of groups that have ended, as it is made from the journal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "tell/mail_text.h"
#include "tell/notice.h"

namespace trainyard::tell {

/// How many bytes the pages of a mail have in all. A page for which there is no room is left out,
/// and the text says where it lies.
constexpr std::size_t kPagesBytesMax = std::size_t{8} << 20;

/// The reports to mail.
struct ReportWish {
  std::vector<model::GroupIndex> groups;  ///< One that is not in the journal is passed over.
  std::size_t pages_bytes_max = kPagesBytesMax;
};
Result<Mail> report_mail(journal::JournalReader& reader, const RunName& run,
                         const ReportWish& wish);

}  // namespace trainyard::tell
