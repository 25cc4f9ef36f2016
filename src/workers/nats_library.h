// The functions of libnats that we call, by the types of its header. The library is loaded when
// workers attach to other machines, so that other runs do not need it. Any thread.
#pragma once

#include <nats/nats.h>

#include "base/result.h"

namespace trainyard::workers {

/// F(member, function) for each function.
// clang-format off: one function a line.
#define TRAINYARD_NATS_FUNCTIONS(F)                     \
  F(options_create, natsOptions_Create)                 \
  F(options_destroy, natsOptions_Destroy)               \
  F(set_servers, natsOptions_SetServers)                \
  F(set_no_randomize, natsOptions_SetNoRandomize)       \
  F(set_user_info, natsOptions_SetUserInfo)             \
  F(set_token, natsOptions_SetToken)                    \
  F(set_nkey, natsOptions_SetNKeyFromSeed)              \
  F(set_secure, natsOptions_SetSecure)                  \
  F(load_ca, natsOptions_LoadCATrustedCertificates)     \
  F(set_host_name, natsOptions_SetExpectedHostname)     \
  F(set_name, natsOptions_SetName)                      \
  F(set_timeout, natsOptions_SetTimeout)                \
  F(set_write_deadline, natsOptions_SetWriteDeadline)   \
  F(set_send_asap, natsOptions_SetSendAsap)             \
  F(set_no_echo, natsOptions_SetNoEcho)                 \
  F(set_buffer_size, natsOptions_SetIOBufSize)          \
  F(set_event_loop, natsOptions_SetEventLoop)           \
  F(set_allow_reconnect, natsOptions_SetAllowReconnect) \
  F(set_ping_interval, natsOptions_SetPingInterval)     \
  F(set_pings_out, natsOptions_SetMaxPingsOut)          \
  F(set_on_error, natsOptions_SetErrorHandler)          \
  F(set_on_closed, natsOptions_SetClosedCB)             \
  F(connect, natsConnection_Connect)                    \
  F(subscribe, natsConnection_SubscribeSync)            \
  F(process_read, natsConnection_ProcessReadEvent)      \
  F(process_write, natsConnection_ProcessWriteEvent)    \
  F(publish, natsConnection_Publish)                    \
  F(publish_request, natsConnection_PublishRequest)     \
  F(max_payload, natsConnection_GetMaxPayload)          \
  F(connected_url, natsConnection_GetConnectedUrl)      \
  F(close, natsConnection_Close)                        \
  F(destroy, natsConnection_Destroy)                    \
  F(next_message, natsSubscription_NextMsg)             \
  F(unsubscribe, natsSubscription_Destroy)              \
  F(data, natsMsg_GetData)                              \
  F(data_length, natsMsg_GetDataLength)                 \
  F(message_destroy, natsMsg_Destroy)                   \
  F(text, natsStatus_GetText)                           \
  F(last_error, nats_GetLastError)
// clang-format on

struct NatsLibrary {
#define TRAINYARD_NATS_MEMBER(member, function) decltype(&::function) member = nullptr;
  TRAINYARD_NATS_FUNCTIONS(TRAINYARD_NATS_MEMBER)
};

/// An error says which package has it, or that this process is a fork of one that has called this.
Result<NatsLibrary> load_nats_library();

}  // namespace trainyard::workers
