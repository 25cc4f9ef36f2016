// Sends what is posted and mailed, several at a time, by libcurl, which is looked for when the
// program runs: it needs none to be installed. No try lasts longer than its limits, whatever the
// other side does.
//
// For the process that tells others alone (tell/teller_process.h): looking for a host may leave a
// thread behind. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "tell/mail_text.h"
#include "tell/outbox.h"

namespace trainyard::tell {

struct SenderLimits {
  Duration connect{10'000};
  Duration post{30'000};  ///< In all.
  Duration mail{60'000};
};

class Sender {
 public:
  /// An error where there is no libcurl, with what would help.
  static Result<Sender> make(SenderLimits limits = {});

  Sender(Sender&&) noexcept;
  Sender& operator=(Sender&&) = delete;
  /// Drops requests in flight.
  ~Sender();

  /// Posts JSON. Redirections are not followed.
  void post(std::uint64_t id, const std::string& url, std::string body);
  void mail(std::uint64_t id, const MailServer& server, std::shared_ptr<const Mail> mail,
            const MailStamp& stamp);

  /// Waits until something has been answered, `descriptor` can be read, or the time is over; and
  /// takes what was answered. What is shown of it holds no address, no password and nothing that
  /// the other side said.
  std::vector<Outbox::Answered> wait(int descriptor, Duration most);

 private:
  struct State;
  explicit Sender(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::tell
