/** How long receivers and proxies may keep the key set (`max-age`, RFC 9111 §5.2.2.1), seconds. */
export const keySetMaxAge = 300
