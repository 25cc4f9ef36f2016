#include "workers/nats_library.h"

#include <cstdint>
#include <expected>

#include "sys/loaded_library.h"
#include "sys/this_process.h"

namespace trainyard::workers {
namespace {

using sys::find_function;

bool find_options(void* in, NatsLibrary& to) {
  return find_function(in, "natsOptions_Create", to.options_create) &&
         find_function(in, "natsOptions_Destroy", to.options_destroy) &&
         find_function(in, "natsOptions_SetServers", to.set_servers) &&
         find_function(in, "natsOptions_SetNoRandomize", to.set_no_randomize) &&
         find_function(in, "natsOptions_SetUserInfo", to.set_user_info) &&
         find_function(in, "natsOptions_SetToken", to.set_token) &&
         find_function(in, "natsOptions_SetNKeyFromSeed", to.set_nkey) &&
         find_function(in, "natsOptions_SetSecure", to.set_secure) &&
         find_function(in, "natsOptions_LoadCATrustedCertificates", to.load_ca) &&
         find_function(in, "natsOptions_SetExpectedHostname", to.set_host_name) &&
         find_function(in, "natsOptions_SetName", to.set_name) &&
         find_function(in, "natsOptions_SetTimeout", to.set_timeout) &&
         find_function(in, "natsOptions_SetWriteDeadline", to.set_write_deadline) &&
         find_function(in, "natsOptions_SetSendAsap", to.set_send_asap) &&
         find_function(in, "natsOptions_SetNoEcho", to.set_no_echo) &&
         find_function(in, "natsOptions_SetIOBufSize", to.set_buffer_size) &&
         find_function(in, "natsOptions_SetEventLoop", to.set_event_loop) &&
         find_function(in, "natsOptions_SetAllowReconnect", to.set_allow_reconnect) &&
         find_function(in, "natsOptions_SetPingInterval", to.set_ping_interval) &&
         find_function(in, "natsOptions_SetMaxPingsOut", to.set_pings_out) &&
         find_function(in, "natsOptions_SetErrorHandler", to.set_on_error) &&
         find_function(in, "natsOptions_SetClosedCB", to.set_on_closed);
}

bool find_all(void* in, NatsLibrary& to) {
  return find_options(in, to) && find_function(in, "natsConnection_Connect", to.connect) &&
         find_function(in, "natsConnection_SubscribeSync", to.subscribe) &&
         find_function(in, "natsConnection_ProcessReadEvent", to.process_read) &&
         find_function(in, "natsConnection_ProcessWriteEvent", to.process_write) &&
         find_function(in, "natsConnection_Publish", to.publish) &&
         find_function(in, "natsConnection_PublishRequest", to.publish_request) &&
         find_function(in, "natsConnection_GetMaxPayload", to.max_payload) &&
         find_function(in, "natsConnection_Close", to.close) &&
         find_function(in, "natsConnection_Destroy", to.destroy) &&
         find_function(in, "natsSubscription_NextMsg", to.next_message) &&
         find_function(in, "natsSubscription_Destroy", to.unsubscribe) &&
         find_function(in, "natsMsg_GetData", to.data) &&
         find_function(in, "natsMsg_GetDataLength", to.data_length) &&
         find_function(in, "natsMsg_Destroy", to.message_destroy) &&
         find_function(in, "natsStatus_GetText", to.text) &&
         find_function(in, "nats_GetLastError", to.last_error);
}

}  // namespace

Result<NatsLibrary> load_nats_library() {
  for (const char* const name : {"libnats.so.3.4", "libnats.so.3.5", "libnats.so.3.6",
                                 "libnats.so.3.7", "libnats.so.3.8", "libnats.so"}) {
    void* const opened = sys::load_library(name);
    NatsLibrary library;
    if (opened == nullptr || !find_all(opened, library)) continue;
    // Its threads see that a server is lost. They start once in a process, and a fork that has the
    // state of the library does not have them.
    static const std::int64_t process = sys::own_pid();
    if (process == sys::own_pid()) return library;
    return std::unexpected(
        Error{"NATS: this process was forked after its parent had used libnats, whose threads are "
              "not in a fork: fork it before that, or start a program"});
  }
  return std::unexpected(
      Error{"NATS: libnats is not here: 'apt install libnats3.4' brings version 3.4"});
}

}  // namespace trainyard::workers
