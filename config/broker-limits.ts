import type { Config } from './config.ts'

/** The limits of MQTT for the broker. Seconds of the settings become milliseconds. */
export function brokerLimits(config: Config) {
  return {
    maxPacketBytes: config.maxPacket,
    maxConnectBytes: config.maxConnectPacket,
    connectTimeoutMs: config.connectTimeout * 1000,
    maxClientIdBytes: config.maxClientId,
    maxSubscriptions: config.maxSubscriptions,
    maxTopicLevels: config.maxTopicLevels,
    incomingWindow: config.incomingWindow,
    outgoingBuffer: config.outgoingBuffer,
    loginFailures: config.loginFailures,
    publishRate: config.publishRate,
    queueLimit: config.queueLimit,
    history: config.history,
    historyBytes: config.historyBytes,
    sessionExpiryMs: config.sessionExpiry * 1000,
    maxSessionsPerCredential: config.maxSessionsPerCredential,
  }
}
