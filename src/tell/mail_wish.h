// The mail settings of the configuration: the server, or why no mail is sent. Pure.
#pragma once

#include <optional>
#include <string>

#include "settings/configuration.h"
#include "tell/mail_plan.h"
#include "tell/mail_text.h"

namespace trainyard::tell {

struct MailWish {
  std::optional<MailServer> server;  ///< Nothing: no mail is sent.
  MailLimits limits;
  std::string why_not;  ///< For people, where it was asked for and something is missing.
};

MailWish mail_wish(const settings::Configuration& configuration);

}  // namespace trainyard::tell
