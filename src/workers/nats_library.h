// The functions of libnats that we call, by the types of its header. The library is loaded when
// workers attach to other machines, so that other runs do not need it. Any thread.
#pragma once

#include <nats/nats.h>

#include "base/result.h"
#include "wire/struct_fields.h"

namespace trainyard::workers {

/// The functions, each behind the name of its member.
#define TRAINYARD_NATS_FUNCTIONS                                                                  \
  (options_create, natsOptions_Create), (options_destroy, natsOptions_Destroy),                   \
      (set_servers, natsOptions_SetServers), (set_no_randomize, natsOptions_SetNoRandomize),      \
      (set_user_info, natsOptions_SetUserInfo), (set_token, natsOptions_SetToken),                \
      (set_nkey, natsOptions_SetNKeyFromSeed), (set_secure, natsOptions_SetSecure),               \
      (load_ca, natsOptions_LoadCATrustedCertificates),                                           \
      (set_host_name, natsOptions_SetExpectedHostname), (set_name, natsOptions_SetName),          \
      (set_timeout, natsOptions_SetTimeout), (set_write_deadline, natsOptions_SetWriteDeadline),  \
      (set_send_asap, natsOptions_SetSendAsap), (set_no_echo, natsOptions_SetNoEcho),             \
      (set_buffer_size, natsOptions_SetIOBufSize), (set_event_loop, natsOptions_SetEventLoop),    \
      (set_allow_reconnect, natsOptions_SetAllowReconnect),                                       \
      (set_ping_interval, natsOptions_SetPingInterval),                                           \
      (set_pings_out, natsOptions_SetMaxPingsOut), (set_on_error, natsOptions_SetErrorHandler),   \
      (set_on_closed, natsOptions_SetClosedCB), (connect, natsConnection_Connect),                \
      (subscribe, natsConnection_SubscribeSync), (process_read, natsConnection_ProcessReadEvent), \
      (process_write, natsConnection_ProcessWriteEvent), (publish, natsConnection_Publish),       \
      (publish_request, natsConnection_PublishRequest),                                           \
      (max_payload, natsConnection_GetMaxPayload), (close, natsConnection_Close),                 \
      (destroy, natsConnection_Destroy), (next_message, natsSubscription_NextMsg),                \
      (unsubscribe, natsSubscription_Destroy), (data, natsMsg_GetData),                           \
      (data_length, natsMsg_GetDataLength), (message_destroy, natsMsg_Destroy),                   \
      (text, natsStatus_GetText), (last_error, nats_GetLastError)

struct NatsLibrary {
#define TRAINYARD_NATS_MEMBER(Library, names) TRAINYARD_NATS_POINTER names
#define TRAINYARD_NATS_POINTER(member, function) decltype(&::function) member = nullptr;
  TRAINYARD_EACH(TRAINYARD_NATS_MEMBER, NatsLibrary, TRAINYARD_NATS_FUNCTIONS)
};

/// An error says which package has it, or that this process is a fork of one that has called this.
Result<NatsLibrary> load_nats_library();

}  // namespace trainyard::workers
