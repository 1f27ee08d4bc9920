/** The checks for texts. The schema of a setting names its check as `format`. */
export const formats = {
  name: /^[A-Za-z0-9._-]{1,64}$/,
  account: /^[^\s@]+@[^\s@]+$/,
  'https-url': (value: string) => hasProtocol(value, 'https:'),
  'base-url': (value: string) => hasProtocol(value, 'https:') && !/[?#]/.test(value),
  'redis-url': isRedisUrl,
  feed: (value: string) => !isUrl(value) || isFeedUrl(value),
}

/** Whether a value is a URL and no path. */
export function isUrl(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(value)
}

function hasProtocol(value: string, protocol: string): boolean {
  return URL.canParse(value) && value.startsWith(`${protocol}//`)
}

/** Refuses a URL with user and password, because `fetch` accepts neither in a URL. */
function isFeedUrl(value: string): boolean {
  if (!hasProtocol(value, 'https:')) return false
  const { username, password, hostname } = new URL(value)
  return username === '' && password === '' && hostname.length <= 253
}

function isRedisUrl(value: string): boolean {
  if (!hasProtocol(value, 'redis:') && !hasProtocol(value, 'rediss:')) return false
  const { hostname, pathname } = new URL(value)
  return hostname !== '' && /^(\/\d*)?$/.test(pathname)
}
