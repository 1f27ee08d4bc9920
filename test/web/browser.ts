import { createHash, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { password } from '../bridge-https/api.ts'
import { patienceMs } from '../patience.ts'
import type { TestHub } from '../start-hub.ts'

/** Chromium without a user interface, where it is installed: the same engine for half the processor time. */
const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync)

/** The reason to skip tests that need a browser. False: Chromium is installed. */
export const skip = executablePath
  ? false
  : 'NOT TESTED: there is no Chromium (apt-get install chromium-headless-shell)'

/** A page that a test has opened, and the problems of the page. */
export interface OpenedPage {
  page: Page
  /** Script errors and console errors, also of the content security policy. */
  problems: string[]
}

/** One Chromium for all tests of a file. It trusts the certificate of test nodes, and no other. */
export function createBrowser(t: Test) {
  let browser: Promise<Browser> | undefined
  t.teardown(async () => (await browser)?.close())

  return {
    blank,

    /** Opens a page without the cookies of other pages. `prepare` runs before its address is loaded. */
    async open(
      t: Test,
      hub: Pick<TestHub, 'httpsPort' | 'caPath'>,
      path = '/',
      options: BrowserContextOptions = {},
      prepare: (page: Page) => Promise<void> = async () => {},
    ): Promise<OpenedPage> {
      const page = await blank(t, hub, options)
      const problems: string[] = []
      page.on('pageerror', (error) => problems.push(error.message))
      page.on('console', (message) => {
        if (message.type() === 'error') problems.push(message.text())
      })
      await prepare(page)
      await page.goto(`https://localhost:${hub.httpsPort}${path}`)
      return { page, problems }
    },
  }

  /** Opens an empty page without the cookies of other pages. */
  async function blank(
    t: Test,
    hub: Pick<TestHub, 'caPath'>,
    options: BrowserContextOptions = {},
  ): Promise<Page> {
    browser ??= launch(hub.caPath)
    const context = await (await browser).newContext(options)
    t.teardown(() => context.close())
    context.setDefaultTimeout(patienceMs)
    return context.newPage()
  }
}

function launch(caPath: string): Promise<Browser> {
  const certificate = new X509Certificate(readFileSync(join(dirname(caPath), 'server.pem')))
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' })
  const fingerprint = createHash('sha256').update(key).digest('base64')
  return chromium.launch({
    ...(executablePath && { executablePath }),
    // A separate process for the graphics costs a fifth more.
    args: ['--no-sandbox', '--in-process-gpu', `--ignore-certificate-errors-spki-list=${fingerprint}`],
  })
}

/** Logs in on a page that shows the log-in form or a button for it. */
export async function logIn(page: Page, email: string): Promise<void> {
  const asked = page.getByRole('heading', { name: 'Log in' })
  const button = page.locator('header').getByRole('button', { name: 'Log in' })
  await asked.or(button).first().waitFor()
  // If the hub asks for a log-in meanwhile, the form takes the place of the button.
  while (!(await asked.isVisible())) await button.click({ timeout: 5_000 }).catch(() => {})
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.locator('form').getByRole('button', { name: 'Log in' }).click()
  await page.getByLabel(`Logged in as ${email}`).waitFor()
}
