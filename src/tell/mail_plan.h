// The plan of mails: the reports of each, and its time. Mails come at most as often as configured,
// and no report is lost. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "settings/configuration.h"
#include "tell/mail_text.h"

namespace trainyard::tell {

struct MailLimits {
  Duration min_interval{3'600'000};  ///< Between two mails.
  int mails_max = 10;                ///< In all, the one at the end included; 0: any number.
};

class MailPlan {
 public:
  explicit MailPlan(MailLimits limits) : limits_(limits) {}

  /// Its report is to be mailed. One that is there already is once.
  void add(model::GroupIndex group);

  /// The groups of a mail that is to be sent now; empty: none is. The last mail that there may be
  /// is kept for the end.
  std::vector<model::GroupIndex> take(Instant now);
  /// When there is something to take; nothing while nothing waits, or until the end.
  [[nodiscard]] std::optional<Instant> due() const;

  /// At the end: all that is left.
  std::vector<model::GroupIndex> take_rest();

 private:
  [[nodiscard]] bool may_send() const {
    return limits_.mails_max == 0 || sent_ + 1 < limits_.mails_max;
  }

  MailLimits limits_;
  int sent_ = 0;
  std::optional<Instant> last_;
  std::vector<model::GroupIndex> waiting_;
};

/// The mail settings of the configuration: the server, or why no mail is sent.
struct MailWish {
  std::optional<MailServer> server;  ///< Nothing: no mail is sent.
  MailLimits limits;
  std::string why_not;  ///< For people, where it was asked for and something is missing.
};

MailWish mail_wish(const settings::Configuration& configuration);

}  // namespace trainyard::tell
