// The parts of a mail, and its header lines. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::tell {

/// A report as a page of its own.
struct MailPage {
  std::string name;  ///< Of its file: "train.html".
  std::string html;
};

struct Mail {
  std::string subject;
  std::string text;
  std::vector<MailPage> pages;
};

/// How safely it is sent.
enum class MailSecurity : std::uint8_t {
  None,       ///< In clear.
  IfOffered,  ///< Encrypted where the server offers it, whatever its certificate says.
  StartTls,   ///< Encrypted before anything is said.
  Tls,        ///< Encrypted from the start.
};

/// Who sends mails, by which server, and who gets them.
struct MailServer {
  std::string host;
  int port = 25;
  MailSecurity security = MailSecurity::IfOffered;
  std::string ca_file;  ///< Empty: those of the machine.
  std::string user;
  std::string password;  ///< Empty: nobody logs in.
  std::vector<std::string> receivers;

  /// The address of the user, at the server where it says no other.
  [[nodiscard]] std::string sender() const;
  /// "smtp.example.com:587"
  [[nodiscard]] std::string shown() const;
};

/// The mail among all others.
struct MailStamp {
  std::int64_t unix_ms = 0;
  std::string id;  ///< Unlike that of any other: letters, digits, dots.
};

/// "Thu, 26 Nov 2026 02:10:00 +0000".
std::string mail_date(std::int64_t unix_ms);

/// The lines at the head of a mail, without its parts': "Subject: ...".
std::vector<std::string> mail_head(const MailServer& server, std::string_view subject,
                                   const MailStamp& stamp);

}  // namespace trainyard::tell
