#include "tell/mail_plan.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace trainyard::tell {

void MailPlan::add(model::GroupIndex group) {
  if (std::ranges::find(waiting_, group) == waiting_.end()) waiting_.push_back(group);
}

std::optional<Instant> MailPlan::due() const {
  if (waiting_.empty() || !may_send()) return std::nullopt;
  return last_ ? *last_ + limits_.min_interval : Instant{};
}

std::vector<model::GroupIndex> MailPlan::take(Instant now) {
  const std::optional<Instant> when = due();
  if (!when || now < *when) return {};
  last_ = now;
  ++sent_;
  return std::exchange(waiting_, {});
}

std::vector<model::GroupIndex> MailPlan::take_rest() { return std::exchange(waiting_, {}); }

namespace {

using settings::Setting;

constexpr int kPortOfTls = 465;

MailSecurity security_of(std::string_view word, const MailServer& server) {
  if (word == "none") return MailSecurity::None;
  if (word == "starttls") return MailSecurity::StartTls;
  if (word == "tls" || server.port == kPortOfTls) return MailSecurity::Tls;
  return server.password.empty() ? MailSecurity::IfOffered : MailSecurity::StartTls;
}

/// The parts between commas, without the blanks around them.
std::vector<std::string> parted(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const auto first = part.find_first_not_of(kBlanks);
    if (first != std::string_view::npos) {
      parts.emplace_back(part.substr(first, part.find_last_not_of(kBlanks) - first + 1));
    }
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

/// As far as a person may have mistyped it: what it really is only its server knows.
bool is_address(std::string_view text) {
  const std::size_t at = text.find('@');
  return at != 0 && at != std::string_view::npos && at + 1 < text.size() &&
         text.find_first_of(" \t<>") == std::string_view::npos;
}

}  // namespace

MailWish mail_wish(const settings::Configuration& configuration) {
  MailWish wish;
  if (!configuration.flag(Setting::SmtpEnable)) return wish;
  wish.limits = {.min_interval = configuration.duration(Setting::SmtpMinInterval),
                 .mails_max = configuration.count(Setting::SmtpMaxNumbers)};
  MailServer server{.host = configuration.text(Setting::SmtpServerHost),
                    .port = configuration.count(Setting::SmtpServerPort),
                    .ca_file = configuration.text(Setting::SmtpCaFile),
                    .user = configuration.text(Setting::SmtpUser),
                    .password = configuration.text(Setting::SmtpPassword),
                    .receivers = parted(configuration.text(Setting::SmtpReceiver))};
  if (server.ca_file == "auto") server.ca_file.clear();
  server.security = security_of(configuration.text(Setting::SmtpSecurity), server);
  std::string missing;
  const auto need = [&missing](bool there, std::string_view key) {
    if (!there) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", key);
  };
  need(!server.host.empty(), "smtp.server-host");
  need(!server.user.empty(), "smtp.user");
  need(!server.receivers.empty(), "smtp.receiver");
  const auto wrong = std::ranges::find_if_not(server.receivers, is_address);
  if (missing.empty() && wrong != server.receivers.end()) {
    wish.why_not =
        fmt::format("mail: reports are not mailed: smtp.receiver: '{}' is not an address", *wrong);
  } else if (missing.empty()) {
    wish.server = server;
  } else {
    wish.why_not = fmt::format("mail: reports are not mailed; not set: {}", missing);
  }
  return wish;
}

}  // namespace trainyard::tell
