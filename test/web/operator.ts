import type { Test } from 'tap'
import { addUser, openApi } from '../bridge-https/api.ts'
import { institutions } from '../events.ts'
import type { TestHub } from '../start-hub.ts'
import { type createBrowser, logIn, type OpenedPage } from './browser.ts'

/** Opens a page of the console as an operator. */
export async function openConsole(
  t: Test,
  hub: TestHub,
  browser: ReturnType<typeof createBrowser>,
  path = '/console',
  options?: Parameters<typeof browser.open>[3],
): Promise<OpenedPage & { email: string }> {
  const [own = ''] = institutions
  const { email } = await addUser(hub, await openApi(t, hub), own, { permissions: ['operate'] })
  const opened = await browser.open(t, hub, path, options)
  await logIn(opened.page, email)
  await opened.page.getByText('Answers', { exact: true }).waitFor()
  return { ...opened, email }
}
