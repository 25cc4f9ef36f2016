// The process that sends notices and mail (tell/teller.h): its main function, and the messages of
// the yard to it, as packets. Both are this program.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "tell/mail_text.h"
#include "tell/notice.h"
#include "tell/teller.h"

namespace trainyard::tell {

/// In the fork; `socket` is its end of that to the yard. It has nothing else of its parent, and
/// ends soon after that has.
[[noreturn]] void become_teller(int socket, TellerOptions options);

/// The run has begun.
struct BeginWord {
  RunName run;
  std::string if_it_dies;  ///< Posted where no end is told.
};
/// Post this.
struct PostWord {
  std::string what;
  std::string body;
};
/// A group has ended.
struct MailWord {
  model::GroupIndex group;
};
/// The run is over: post this, mail what is left, and end.
struct FinishWord {
  std::string what;
  std::string body;
};
using TellerWord = std::variant<BeginWord, PostWord, MailWord, FinishWord>;

std::string pack(const TellerWord& word);
TellerWord unpack(std::string_view bytes);

// The mail with the reports of groups that have ended, as it is made from the journal.

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
