// The functions of libnats that we call, by the types of its header. The library is loaded when
// workers attach to other machines, so that other runs do not need it. Any thread.
#pragma once

#include <nats/nats.h>

#include "base/result.h"

namespace trainyard::workers {

struct NatsLibrary {
  decltype(&::natsOptions_Create) options_create = nullptr;
  decltype(&::natsOptions_Destroy) options_destroy = nullptr;
  decltype(&::natsOptions_SetServers) set_servers = nullptr;
  decltype(&::natsOptions_SetNoRandomize) set_no_randomize = nullptr;
  decltype(&::natsOptions_SetUserInfo) set_user_info = nullptr;
  decltype(&::natsOptions_SetToken) set_token = nullptr;
  decltype(&::natsOptions_SetNKeyFromSeed) set_nkey = nullptr;
  decltype(&::natsOptions_SetSecure) set_secure = nullptr;
  decltype(&::natsOptions_LoadCATrustedCertificates) load_ca = nullptr;
  decltype(&::natsOptions_SetExpectedHostname) set_host_name = nullptr;
  decltype(&::natsOptions_SetName) set_name = nullptr;
  decltype(&::natsOptions_SetTimeout) set_timeout = nullptr;
  decltype(&::natsOptions_SetWriteDeadline) set_write_deadline = nullptr;
  decltype(&::natsOptions_SetSendAsap) set_send_asap = nullptr;
  decltype(&::natsOptions_SetNoEcho) set_no_echo = nullptr;
  decltype(&::natsOptions_SetIOBufSize) set_buffer_size = nullptr;
  decltype(&::natsOptions_SetEventLoop) set_event_loop = nullptr;
  decltype(&::natsOptions_SetAllowReconnect) set_allow_reconnect = nullptr;
  decltype(&::natsOptions_SetPingInterval) set_ping_interval = nullptr;
  decltype(&::natsOptions_SetMaxPingsOut) set_pings_out = nullptr;
  decltype(&::natsOptions_SetErrorHandler) set_on_error = nullptr;
  decltype(&::natsOptions_SetClosedCB) set_on_closed = nullptr;
  decltype(&::natsConnection_Connect) connect = nullptr;
  decltype(&::natsConnection_SubscribeSync) subscribe = nullptr;
  decltype(&::natsConnection_ProcessReadEvent) process_read = nullptr;
  decltype(&::natsConnection_ProcessWriteEvent) process_write = nullptr;
  decltype(&::natsConnection_Publish) publish = nullptr;
  decltype(&::natsConnection_PublishRequest) publish_request = nullptr;
  decltype(&::natsConnection_GetMaxPayload) max_payload = nullptr;
  decltype(&::natsConnection_Close) close = nullptr;
  decltype(&::natsConnection_Destroy) destroy = nullptr;
  decltype(&::natsSubscription_NextMsg) next_message = nullptr;
  decltype(&::natsSubscription_Destroy) unsubscribe = nullptr;
  decltype(&::natsMsg_GetData) data = nullptr;
  decltype(&::natsMsg_GetDataLength) data_length = nullptr;
  decltype(&::natsMsg_Destroy) message_destroy = nullptr;
  decltype(&::natsStatus_GetText) text = nullptr;
  decltype(&::nats_GetLastError) last_error = nullptr;
};

/// An error says which package has it, or that this process is a fork of one that has called this.
Result<NatsLibrary> load_nats_library();

}  // namespace trainyard::workers
