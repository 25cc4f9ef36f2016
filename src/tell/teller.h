// The yard's end of the process that tells others: webhooks are posted and mails sent there, so
// that no server, and nothing that libcurl does, holds up or ends a run.
//
// Nothing here waits but finish(). What cannot be handed over at once is kept and handed over
// later; there is a bound. Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"
#include "sys/descriptor.h"
#include "tell/mail_plan.h"
#include "tell/mail_text.h"
#include "tell/notice.h"
#include "tell/outbox.h"
#include "tell/sender.h"
#include "text/web_address.h"

namespace trainyard::tell {

struct TellerOptions {
  std::vector<text::WebAddress> notify;
  std::optional<MailServer> mail;
  MailLimits mail_limits;
  std::string run_directory;
  std::string job;
  std::string host;
  SenderLimits limits;
  Duration patience_at_end{10'000};             ///< How long it goes on when the run is over, and
  Duration pause_at_end = Outbox::kPauseAtEnd;  ///< between two tries then.
};

class Teller {
 public:
  /// How many words may wait to be handed over, and how long each may be.
  static constexpr std::size_t kUnsentMax = 20'000;
  static constexpr std::size_t kWordBytesMax = std::size_t{64} << 10;
  /// How many lines it hears are told to people; the log has all.
  static constexpr int kLinesMax = 50;

  /// Forks the process. Early: it must not inherit a thread, a database or a socket.
  static Result<Teller> start(const TellerOptions& options);

  Teller(Teller&& other) noexcept;
  Teller& operator=(Teller&&) = delete;
  /// Where begin() was called and finish() was not, the process tells that the run has died, and
  /// ends by itself.
  ~Teller();

  /// The run has begun, and is called so from now on. `if_it_dies` is posted where this process
  /// ends without finish().
  void begin(const RunName& run, const std::string& if_it_dies);
  /// Posts it to all addresses. `what` is for people: "the first failure".
  void post(const std::string& what, const std::string& body);
  /// Its report is mailed when its turn has come. It stands in the journal.
  void mail(model::GroupIndex group);

  /// How many words wait to be handed over.
  [[nodiscard]] std::size_t unsent() const { return unsent_.size(); }

  /// Returns lines for the user: a message could not be sent. Hands over messages that had to wait.
  std::vector<std::string> hear();

  /// The run is over: this is the last to be posted, and what is left is mailed. Returns at once,
  /// and the process goes on; wait() waits for it.
  void finish(const std::string& what, const std::string& body);
  /// Waits for its end, as long as it may go on and a second more; then it is killed. Its lines.
  std::vector<std::string> wait();
  /// Whether it has ended, or does so in this time: then wait() does not wait.
  [[nodiscard]] bool ends_within(Duration most) const;

 private:
  Teller(std::int64_t pid, sys::Descriptor words, Duration patience)
      : pid_(pid), words_(std::move(words)), patience_(patience) {}
  void say(std::string word);
  void hand_over();
  void listen(std::vector<std::string>& lines);

  std::int64_t pid_ = 0;
  sys::Descriptor words_;
  Duration patience_;
  std::deque<std::string> unsent_;
  int lines_ = 0;
  bool begun_ = false;
  bool finished_ = false;
  bool ended_ = false;  ///< It says nothing any more.
};

}  // namespace trainyard::tell
