#include "tell/sender.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <curl/curl.h>
#include <curl/easy.h>
#include <curl/multi.h>
#include <fmt/format.h>

#include "base/check.h"
#include "sys/environment.h"
#include "sys/loaded_library.h"

// The names and numbers used here have not changed since libcurl 7.85; the macros that check types
// only get in the way of functions that are found by name.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace trainyard::tell {
namespace {

/// Its functions, by name.
struct Curl {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_mime_init) mime_init = nullptr;
  decltype(&::curl_mime_addpart) mime_addpart = nullptr;
  decltype(&::curl_mime_data) mime_data = nullptr;
  decltype(&::curl_mime_type) mime_type = nullptr;
  decltype(&::curl_mime_filename) mime_filename = nullptr;
  decltype(&::curl_mime_encoder) mime_encoder = nullptr;
  decltype(&::curl_mime_free) mime_free = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
};

std::optional<Curl> functions_of(void* library) {
  Curl curl;
  const bool all =
      sys::find_function(library, "curl_global_init", curl.global_init) &&
      sys::find_function(library, "curl_easy_init", curl.easy_init) &&
      sys::find_function(library, "curl_easy_setopt", curl.easy_setopt) &&
      sys::find_function(library, "curl_easy_getinfo", curl.easy_getinfo) &&
      sys::find_function(library, "curl_easy_cleanup", curl.easy_cleanup) &&
      sys::find_function(library, "curl_easy_strerror", curl.easy_strerror) &&
      sys::find_function(library, "curl_slist_append", curl.slist_append) &&
      sys::find_function(library, "curl_slist_free_all", curl.slist_free_all) &&
      sys::find_function(library, "curl_mime_init", curl.mime_init) &&
      sys::find_function(library, "curl_mime_addpart", curl.mime_addpart) &&
      sys::find_function(library, "curl_mime_data", curl.mime_data) &&
      sys::find_function(library, "curl_mime_type", curl.mime_type) &&
      sys::find_function(library, "curl_mime_filename", curl.mime_filename) &&
      sys::find_function(library, "curl_mime_encoder", curl.mime_encoder) &&
      sys::find_function(library, "curl_mime_free", curl.mime_free) &&
      sys::find_function(library, "curl_multi_init", curl.multi_init) &&
      sys::find_function(library, "curl_multi_add_handle", curl.multi_add_handle) &&
      sys::find_function(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
      sys::find_function(library, "curl_multi_perform", curl.multi_perform) &&
      sys::find_function(library, "curl_multi_poll", curl.multi_poll) &&
      sys::find_function(library, "curl_multi_info_read", curl.multi_info_read) &&
      sys::find_function(library, "curl_multi_cleanup", curl.multi_cleanup);
  if (!all) return std::nullopt;
  return curl;
}

Result<Curl> load() {
  // Debian has it twice, by whose TLS it uses; both have the same functions.
  for (const char* const name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    void* const library = sys::load_library(name);
    if (library == nullptr) continue;
    std::optional<Curl> curl = functions_of(library);
    if (curl && curl->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return *curl;
  }
  return std::unexpected(
      Error{"libcurl 7.85 or later was not found; 'apt install libcurl4' installs it"});
}

/// The reply of the server is not for users: it may quote the address.
std::size_t drop(const char* /*bytes*/, std::size_t size, std::size_t count, void* /*nobody*/) {
  return size * count;
}

/// One try.
struct Transfer {
  std::uint64_t id = 0;
  CURL* handle = nullptr;
  curl_slist* head = nullptr;
  curl_slist* receivers = nullptr;
  curl_mime* parts = nullptr;
  std::string body;
  std::shared_ptr<const Mail> mail;
  bool is_mail = false;
  std::array<char, CURL_ERROR_SIZE> error{};
};

std::string host_in_brackets(const std::string& host) {
  return host.contains(':') && !host.starts_with('[') ? fmt::format("[{}]", host) : host;
}

Outbox::Answered http_answer(std::uint64_t id, long status) {
  if (status >= 200 && status < 300) return {.id = id, .answer = Answer::Taken, .how = {}};
  if (status >= 300 && status < 400) {
    return {.id = id,
            .answer = Answer::Refused,
            .how = fmt::format("answers {}: the address has changed; write the new one in 'notify'",
                               status)};
  }
  const bool again = status >= 500 || status == 408 || status == 425 || status == 429;
  return {.id = id,
          .answer = again ? Answer::NotNow : Answer::Refused,
          .how = fmt::format("answers {}", status)};
}

}  // namespace

struct Sender::State {
  Curl curl;
  SenderLimits limits;
  CURLM* multi = nullptr;
  std::map<CURL*, std::unique_ptr<Transfer>> transfers;

  template <class Value>
  void set(const Transfer& transfer, CURLoption option, Value value) const {
    // It can only lack memory, or an option, which fails the try.
    static_cast<void>(curl.easy_setopt(transfer.handle, option, value));
  }
  void append(curl_slist*& list, const std::string& line) const {
    curl_slist* const longer = curl.slist_append(list, line.c_str());
    check(longer != nullptr, "memory for a line");
    list = longer;
  }

  std::unique_ptr<Transfer> begin(std::uint64_t id, Duration most) const;
  void set_ca_file(const Transfer& transfer, const std::string& ca_file) const;
  void add_part(const Transfer& transfer, std::string_view bytes, const char* type,
                const char* name) const;
  void go(std::unique_ptr<Transfer> transfer);
  [[nodiscard]] Outbox::Answered answer_of(const Transfer& transfer, CURLcode code) const;
  [[nodiscard]] Outbox::Answered mail_answer(const Transfer& transfer, CURLcode code) const;
  void free(Transfer& transfer) const;
};

std::unique_ptr<Transfer> Sender::State::begin(std::uint64_t id, Duration most) const {
  auto transfer = std::make_unique<Transfer>();
  transfer->id = id;
  transfer->handle = curl.easy_init();
  check(transfer->handle != nullptr, "memory for a transfer");
  set(*transfer, CURLOPT_NOSIGNAL, 1L);
  set(*transfer, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
  set(*transfer, CURLOPT_TIMEOUT_MS, static_cast<long>(most.count()));
  set(*transfer, CURLOPT_ERRORBUFFER, transfer->error.data());
  set(*transfer, CURLOPT_WRITEFUNCTION, &drop);
  set(*transfer, CURLOPT_FRESH_CONNECT, 1L);
  set(*transfer, CURLOPT_FORBID_REUSE, 1L);
  return transfer;
}

void Sender::State::set_ca_file(const Transfer& transfer, const std::string& ca_file) const {
  if (!ca_file.empty()) return set(transfer, CURLOPT_CAINFO, ca_file.c_str());
  // As the command curl does.
  for (const char* const name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const std::optional<std::string> file = sys::variable(name)) {
      return set(transfer, CURLOPT_CAINFO, file->c_str());
    }
  }
}

void Sender::State::add_part(const Transfer& transfer, std::string_view bytes, const char* type,
                             const char* name) const {
  curl_mimepart* const part = curl.mime_addpart(transfer.parts);
  check(part != nullptr, "memory for a part");
  static_cast<void>(curl.mime_data(part, bytes.data(), bytes.size()));
  static_cast<void>(curl.mime_type(part, type));
  static_cast<void>(curl.mime_encoder(part, "base64"));
  if (name != nullptr) static_cast<void>(curl.mime_filename(part, name));
}

void Sender::State::go(std::unique_ptr<Transfer> transfer) {
  CURL* const handle = transfer->handle;
  check(curl.multi_add_handle(multi, handle) == CURLM_OK, "one more transfer");
  transfers.emplace(handle, std::move(transfer));
}

void Sender::State::free(Transfer& transfer) const {
  static_cast<void>(curl.multi_remove_handle(multi, transfer.handle));
  curl.easy_cleanup(transfer.handle);
  curl.slist_free_all(transfer.head);
  curl.slist_free_all(transfer.receivers);
  if (transfer.parts != nullptr) curl.mime_free(transfer.parts);
}

Outbox::Answered Sender::State::mail_answer(const Transfer& transfer, CURLcode code) const {
  long status = 0;
  static_cast<void>(curl.easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status));
  if (code == CURLE_LOGIN_DENIED) {
    return {.id = transfer.id,
            .answer = Answer::Refused,
            .how = "the server does not take this user and password"};
  }
  if (code == CURLE_USE_SSL_FAILED) {
    return {.id = transfer.id,
            .answer = Answer::Refused,
            .how =
                "the server offers no encryption; 'smtp.security: none' sends in clear, the "
                "password too"};
  }
  const bool said_no = code == CURLE_SEND_ERROR || code == CURLE_WEIRD_SERVER_REPLY ||
                       code == CURLE_UPLOAD_FAILED || code == CURLE_HTTP_RETURNED_ERROR;
  const bool refused = said_no && status >= 500 && status < 600;
  const std::string how = said_no && status >= 400 ? fmt::format("the server answers {}", status)
                                                   : std::string(curl.easy_strerror(code));
  return {.id = transfer.id, .answer = refused ? Answer::Refused : Answer::NotNow, .how = how};
}

Outbox::Answered Sender::State::answer_of(const Transfer& transfer, CURLcode code) const {
  if (code == CURLE_OK && transfer.is_mail) {
    return {.id = transfer.id, .answer = Answer::Taken, .how = {}};
  }
  if (code == CURLE_OK) {
    long status = 0;
    static_cast<void>(curl.easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status));
    return http_answer(transfer.id, status);
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    return {
        .id = transfer.id,
        .answer = Answer::Refused,
        .how = fmt::format(
            "its certificate is not trusted{}",
            transfer.is_mail ? "; set 'smtp.ca-file' to the certificates of its authority" : "")};
  }
  if (transfer.is_mail) return mail_answer(transfer, code);
  return {.id = transfer.id, .answer = Answer::NotNow, .how = curl.easy_strerror(code)};
}

Result<Sender> Sender::make(SenderLimits limits) {
  const Result<Curl> curl = load();
  if (!curl) return std::unexpected(curl.error());
  auto state = std::make_unique<State>();
  state->curl = *curl;
  state->limits = limits;
  state->multi = curl->multi_init();
  if (state->multi == nullptr) return std::unexpected(Error{"libcurl cannot begin"});
  return Sender(std::move(state));
}

Sender::Sender(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sender::Sender(Sender&&) noexcept = default;

Sender::~Sender() {
  if (!state_) return;
  for (auto& [handle, transfer] : state_->transfers) state_->free(*transfer);
  static_cast<void>(state_->curl.multi_cleanup(state_->multi));
}

void Sender::post(std::uint64_t id, const std::string& url, std::string body) {
  std::unique_ptr<Transfer> transfer = state_->begin(id, state_->limits.post);
  transfer->body = std::move(body);
  state_->append(transfer->head, "Content-Type: application/json");
  state_->append(transfer->head, "User-Agent: trainyard");
  // Nobody is asked before the body is sent: some never answer that.
  state_->append(transfer->head, "Expect:");
  state_->set(*transfer, CURLOPT_URL, url.c_str());
  state_->set(*transfer, CURLOPT_PROTOCOLS_STR, "http,https");
  state_->set(*transfer, CURLOPT_FOLLOWLOCATION, 0L);
  state_->set(*transfer, CURLOPT_HTTPHEADER, transfer->head);
  state_->set(*transfer, CURLOPT_POSTFIELDSIZE, static_cast<long>(transfer->body.size()));
  state_->set(*transfer, CURLOPT_POSTFIELDS, transfer->body.data());
  state_->set_ca_file(*transfer, {});
  state_->go(std::move(transfer));
}

void Sender::mail(std::uint64_t id, const MailServer& server, std::shared_ptr<const Mail> mail,
                  const MailStamp& stamp) {
  std::unique_ptr<Transfer> transfer = state_->begin(id, state_->limits.mail);
  transfer->is_mail = true;
  transfer->mail = std::move(mail);
  const bool tls = server.security == MailSecurity::Tls;
  const std::string url =
      fmt::format("{}://{}:{}", tls ? "smtps" : "smtp", host_in_brackets(server.host), server.port);
  state_->set(*transfer, CURLOPT_URL, url.c_str());
  state_->set(*transfer, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  const long encryption = server.security == MailSecurity::None        ? CURLUSESSL_NONE
                          : server.security == MailSecurity::IfOffered ? CURLUSESSL_TRY
                                                                       : CURLUSESSL_ALL;
  state_->set(*transfer, CURLOPT_USE_SSL, encryption);
  if (server.security == MailSecurity::IfOffered) {
    state_->set(*transfer, CURLOPT_SSL_VERIFYPEER, 0L);
    state_->set(*transfer, CURLOPT_SSL_VERIFYHOST, 0L);
  } else {
    state_->set_ca_file(*transfer, server.ca_file);
  }
  if (!server.password.empty()) {
    state_->set(*transfer, CURLOPT_USERNAME, server.user.c_str());
    state_->set(*transfer, CURLOPT_PASSWORD, server.password.c_str());
  }
  state_->set(*transfer, CURLOPT_MAIL_FROM, fmt::format("<{}>", server.sender()).c_str());
  for (const std::string& receiver : server.receivers) {
    state_->append(transfer->receivers, fmt::format("<{}>", receiver));
  }
  state_->set(*transfer, CURLOPT_MAIL_RCPT, transfer->receivers);
  for (const std::string& line : mail_head(server, transfer->mail->subject, stamp)) {
    state_->append(transfer->head, line);
  }
  state_->set(*transfer, CURLOPT_HTTPHEADER, transfer->head);
  transfer->parts = state_->curl.mime_init(transfer->handle);
  check(transfer->parts != nullptr, "memory for the parts of a mail");
  state_->add_part(*transfer, transfer->mail->text, "text/plain; charset=utf-8", nullptr);
  for (const MailPage& page : transfer->mail->pages) {
    state_->add_part(*transfer, page.html, "text/html; charset=utf-8", page.name.c_str());
  }
  state_->set(*transfer, CURLOPT_MIMEPOST, transfer->parts);
  state_->go(std::move(transfer));
}

std::vector<Outbox::Answered> Sender::wait(int descriptor, Duration most) {
  State& state = *state_;
  std::vector<Outbox::Answered> answered;
  const auto take = [&] {
    int running = 0;
    static_cast<void>(state.curl.multi_perform(state.multi, &running));
    int left = 0;
    while (CURLMsg* const message = state.curl.multi_info_read(state.multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto transfer = state.transfers.find(message->easy_handle);
      if (transfer == state.transfers.end()) continue;
      answered.push_back(state.answer_of(*transfer->second, message->data.result));
      state.free(*transfer->second);
      state.transfers.erase(transfer);
    }
  };
  take();
  if (!answered.empty()) return answered;
  std::array<curl_waitfd, 1> also{{{.fd = descriptor, .events = CURL_WAIT_POLLIN, .revents = 0}}};
  int ready = 0;
  static_cast<void>(state.curl.multi_poll(state.multi, also.data(), also.size(),
                                          static_cast<int>(most.count()), &ready));
  take();
  return answered;
}

}  // namespace trainyard::tell
