#include "tell/teller_process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/match.h"
#include "report/group_report.h"
#include "report/group_source.h"
#include "report/html.h"
#include "report/sink.h"
#include "report/status_text.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "sys/clock.h"
#include "sys/descriptor.h"
#include "sys/fork.h"
#include "sys/packing.h"
#include "sys/this_process.h"
#include "tell/mail_plan.h"
#include "tell/outbox.h"
#include "tell/sender.h"

namespace trainyard::tell {
namespace {

/// How long it waits for nothing in particular.
constexpr Duration kLong{3'600'000};

class TellerProcess {
 public:
  TellerProcess(TellerOptions options, Sender sender)
      : options_(std::move(options)),
        sender_(std::move(sender)),
        outbox_(options_.pause_at_end),
        mails_(options_.mail_limits),
        mail_server_(options_.mail.value_or(MailServer{})),
        run_{.job = options_.job, .directory = options_.run_directory, .host = options_.host} {}

  void run() {
    while (!is_over()) {
      send_due();
      const int socket = hears_ ? sys::kLoneSocket : -1;
      for (const Outbox::Answered& answered : sender_.wait(socket, patience())) {
        outbox_.answer(answered, now());
      }
      hear();
      make_mail();
      pass_on();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Instant now() const {
    return {std::chrono::duration_cast<Duration>(Clock::now() - begin_)};
  }

  /// All is said that is to be said, or nobody waits for it any more.
  bool is_over() {
    if (!hears_ && !finish_by_) return true;
    if (!finish_by_) return false;
    if (!outbox_.empty() && now() < *finish_by_) return false;
    outbox_.give_up();
    pass_on();
    return true;
  }

  [[nodiscard]] Duration patience() const {
    const Instant at = now();
    Instant until = at + kLong;
    if (finish_by_) until = std::min(until, *finish_by_);
    if (const auto next = outbox_.next()) until = std::min(until, *next);
    if (const auto mail = mails_.due(); mail && !outbox_.has_mail()) until = std::min(until, *mail);
    return std::max(Duration{0}, until - at);
  }

  void hear() {
    std::string bytes(Teller::kWordBytesMax, '\0');
    while (hears_) {
      const ssize_t got = ::recv(sys::kLoneSocket, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got <= 0) return hear_the_end();
      hear(unpack(std::string_view(bytes).substr(0, static_cast<std::size_t>(got))));
    }
  }

  /// The yard is gone. Where it has not said that the run is over, it has died.
  void hear_the_end() {
    hears_ = false;
    if (begun_ && !finish_by_) hear(FinishWord{.what = "its death", .body = if_it_dies_});
  }

  void hear(const TellerWord& word) {
    match(
        word,
        [this](const BeginWord& it) {
          begun_ = true;
          run_ = it.run;
          if_it_dies_ = it.if_it_dies;
        },
        [this](const PostWord& it) { post(it.what, it.body); },
        [this](const MailWord& it) {
          if (options_.mail) mails_.add(it.group);
        },
        [this](const FinishWord& it) {
          post(it.what, it.body);
          finish_by_ = now() + options_.patience_at_end;
          outbox_.hurry(now());
          add_mail(mails_.take_rest());
        });
  }

  void post(const std::string& what, const std::string& body) {
    for (std::size_t i = 0; i < options_.notify.size(); ++i) {
      outbox_.add({.to = "notify: " + options_.notify[i].host,
                   .what = what,
                   .address = i,
                   .body = body,
                   .mail = nullptr},
                  now());
    }
  }

  /// One at a time: while a server does not answer, reports are gathered.
  void make_mail() {
    if (outbox_.has_mail()) return;
    add_mail(mails_.take(now()));
  }

  void add_mail(const std::vector<model::GroupIndex>& groups) {
    if (groups.empty()) return;
    Result<journal::JournalReader> reader =
        journal::JournalReader::open(run::journal_path(options_.run_directory));
    Result<Mail> mail =
        reader ? report_mail(*reader, run_, {.groups = groups}) : std::unexpected(reader.error());
    if (!mail) {
      tell(fmt::format("mail: a report cannot be made: {}", mail.error().message));
      return;
    }
    const std::string what =
        groups.size() == 1 ? "a report" : fmt::format("{} reports", groups.size());
    outbox_.add({.to = "mail: " + mail_server_.shown(),
                 .what = what,
                 .address = std::nullopt,
                 .body = {},
                 .mail = std::make_shared<const Mail>(std::move(*mail))},
                now());
  }

  void send_due() {
    for (const Outbox::Due& due : outbox_.take_due(now())) {
      if (due.letter->mail) {
        sender_.mail(due.id, mail_server_, due.letter->mail, stamp());
      } else {
        sender_.post(due.id, options_.notify.at(due.letter->address.value_or(0)).url,
                     due.letter->body);
      }
    }
  }

  MailStamp stamp() {
    const std::int64_t at = sys::unix_milliseconds();
    return {.unix_ms = at, .id = fmt::format("{}.{}.{}", at, sys::own_pid(), ++mails_made_)};
  }

  void pass_on() {
    for (const Outbox::Line& line : outbox_.take_lines()) {
      if (line.trouble) {
        tell(line.text);
      } else {
        log(line.text);
      }
    }
  }

  /// For people, as far as somebody listens.
  void tell(const std::string& line) {
    log(line);
    static_cast<void>(
        ::send(sys::kLoneSocket, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }

  void log(const std::string& line) {
    if (!log_.is_open()) {
      Result<sys::Descriptor> log =
          sys::open_log(run::telling_log_path(options_.run_directory), sys::IfThere::Append);
      if (!log) return;
      log_ = std::move(*log);
    }
    const std::string text = fmt::format("{}  {}\n", mail_date(sys::unix_milliseconds()), line);
    static_cast<void>(::write(log_.get(), text.data(), text.size()));
  }

  TellerOptions options_;
  Sender sender_;
  Outbox outbox_;
  MailPlan mails_;
  MailServer mail_server_;  ///< Nobody's where none is to be mailed.
  Clock::time_point begin_ = Clock::now();
  RunName run_;
  std::string if_it_dies_;
  sys::Descriptor log_;
  std::optional<Instant> finish_by_;  ///< The run is over, and so is this by then.
  int mails_made_ = 0;
  bool begun_ = false;
  bool hears_ = true;
};

}  // namespace

void become_teller(int socket, TellerOptions options) {
  if (!sys::become_alone(
          {.socket = socket, .name = "trainyard-tells", .ends_with_parent = false})) {
    ::_exit(0);
  }
  Result<Sender> sender = Sender::make(options.limits);
  if (!sender) {
    const std::string line = "no notifications of this run are sent: " + sender.error().message;
    static_cast<void>(::send(sys::kLoneSocket, line.data(), line.size(), MSG_NOSIGNAL));
    ::_exit(0);
  }
  TellerProcess(std::move(options), std::move(*sender)).run();
  ::_exit(0);
}

namespace {

constexpr std::uint8_t kBegin = 0;
constexpr std::uint8_t kPost = 1;
constexpr std::uint8_t kMail = 2;
constexpr std::uint8_t kFinish = 3;

BeginWord unpack_begin(sys::Unpacking& from) {
  BeginWord word;
  word.run.job = from.text();
  if (const auto number = from.number<std::uint32_t>(); number != 0) word.run.number = number;
  word.run.directory = from.text();
  word.run.host = from.text();
  word.if_it_dies = from.text();
  return word;
}

}  // namespace

std::string pack(const TellerWord& word) {
  sys::Packing packing;
  match(
      word,
      [&packing](const BeginWord& it) {
        packing.add(kBegin);
        packing.add(it.run.job);
        packing.add(it.run.number.value_or(0));
        packing.add(it.run.directory);
        packing.add(it.run.host);
        packing.add(it.if_it_dies);
      },
      [&packing](const PostWord& it) {
        packing.add(kPost);
        packing.add(it.what);
        packing.add(it.body);
      },
      [&packing](const MailWord& it) {
        packing.add(kMail);
        packing.add(it.group.value);
      },
      [&packing](const FinishWord& it) {
        packing.add(kFinish);
        packing.add(it.what);
        packing.add(it.body);
      });
  return std::move(packing).take();
}

TellerWord unpack(std::string_view bytes) {
  sys::Unpacking from(bytes);
  const auto kind = from.number<std::uint8_t>();
  if (kind == kBegin) return unpack_begin(from);
  if (kind == kMail) return MailWord{.group = {from.number<std::uint32_t>()}};
  std::string what = from.text();
  std::string body = from.text();
  if (kind == kPost) return PostWord{.what = std::move(what), .body = std::move(body)};
  return FinishWord{.what = std::move(what), .body = std::move(body)};
}

namespace {

/// "train: 17 of 18 tasks finished, 1 failed, in 2h5m".
std::string group_line(const journal::GroupRow& group, std::optional<Duration> took) {
  std::string line =
      fmt::format("{}: {} of {} finished", group.name, report::with_commas(group.finished),
                  report::counted(group.tasks, "task"));
  for (const auto& [count, word] :
       {std::pair{group.failed, "failed"}, std::pair{group.skipped, "skipped"},
        std::pair{group.stopped, "stopped"}}) {
    if (count > 0) line += fmt::format(", {} {}", report::with_commas(count), word);
  }
  return took ? fmt::format("{}, in {}", line, to_text(*took)) : line;
}

/// The page of a group, as far as there is room for all of it.
struct Page {
  std::optional<std::string> html;
  std::string line;
};

Result<Page> page_of(journal::JournalReader& reader, const journal::GroupRow& group,
                     const report::ReportBasis& basis, std::size_t bytes_max) {
  std::string html;
  bool whole = true;
  const Result<report::GroupFigures> figures =
      report::with_report(reader, group, basis, [&](report::GroupReport& report) {
        report::Sink sink = [&](std::string_view text) {
          whole = whole && html.size() + text.size() <= bytes_max;
          if (whole) html += text;
        };
        return report::write_html(report, sink);
      });
  if (!figures) return std::unexpected(figures.error());
  Page page{.html = std::nullopt, .line = group_line(group, figures->digest.took())};
  if (whole) page.html = std::move(html);
  return page;
}

/// The name of a file in a header of a mail, of which not every server takes another letter.
std::string in_ascii(std::string name) {
  constexpr unsigned char kLast = 0x7e;
  std::ranges::replace_if(
      name, [](char letter) { return static_cast<unsigned char>(letter) > kLast; }, '_');
  return name;
}

/// "trainyard train report", of several groups "trainyard digits report: 3 groups".
std::string report_subject(const std::string& job, const std::vector<std::string>& groups) {
  if (groups.size() == 1) return fmt::format("trainyard {} report", groups.front());
  return fmt::format("trainyard {} report: {} groups", job, groups.size());
}

}  // namespace

Result<Mail> report_mail(journal::JournalReader& reader, const RunName& run,
                         const ReportWish& wish) {
  const Result<report::ReportBasis> basis = report::read_basis(reader);
  if (!basis) return std::unexpected(basis.error());
  const Result<std::vector<journal::GroupRow>> rows = reader.groups();
  if (!rows) return std::unexpected(rows.error());
  Mail mail;
  std::vector<std::string> names;
  std::string left_out;
  std::size_t room = wish.pages_bytes_max;
  for (const journal::GroupRow& row : *rows) {
    if (std::ranges::find(wish.groups, row.index) == wish.groups.end()) continue;
    Result<Page> made = page_of(reader, row, *basis, room);
    if (!made) return std::unexpected(std::move(made.error()).in(row.name));
    Page& page = *made;
    names.push_back(row.name);
    mail.text += page.line + "\n";
    const std::string file = run::report_name(row.name) + ".html";
    if (!page.html) {
      left_out += fmt::format(
          "The report of {} is too long for a mail; when the run has ended it is {}/{}\n", row.name,
          run::reports_directory(run.directory), file);
      continue;
    }
    room -= page.html->size();
    mail.pages.push_back({.name = in_ascii(file), .html = std::move(*page.html)});
  }
  mail.subject = report_subject(run.job, names);
  mail.text = fmt::format("{} on {}\n{}\n\n{}{}", run.job, run.host,
                          report::run_line(run.number, run.directory), mail.text, left_out);
  return mail;
}

}  // namespace trainyard::tell
