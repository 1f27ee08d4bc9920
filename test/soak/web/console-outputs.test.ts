import t from 'tap'
import { openOutput, startTitleServer } from '../../output-receiver.ts'
import { createBrowser, skip } from '../../web/browser.ts'
import { openConsole } from '../../web/operator.ts'

const browser = createBrowser(t)

t.test('outputs say what they show, and can be tested', { skip }, async (t) => {
  const server = await startTitleServer(t)
  server.behave(({ name }, response) => response.writeHead(name === 'first' ? 200 : 401).end())
  const url = `http://127.0.0.1:${server.port}/{name}?t={title}&key=SECRET`
  const { hub, play } = await openOutput(t, url)
  await play('Ebbe und Flut')
  const { page, problems } = await openConsole(t, hub, browser, '/console/outputs')
  const first = page.getByRole('row').filter({ hasText: 'url-template: first' })
  await first.getByText('Ebbe und Flut').waitFor()
  await first.getByText('shown', { exact: true }).waitFor()
  const second = page.getByRole('row').filter({ hasText: 'url-template: second' })
  await second.getByText('nothing', { exact: true }).waitFor()

  await second.getByRole('button', { name: /^Test: web, / }).click()
  t.equal(server.texts('second').length, 0, 'a person is asked first')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('A made-up title goes out.').waitFor()
  await dialog.getByRole('button', { name: 'Test' }).click()
  await page.getByText('answered 401').first().waitFor()
  t.match(server.texts('second'), [/^Test /])
  await page.getByText('key=***').waitFor()
  t.notMatch(await page.content(), 'SECRET')
  t.same(problems, [])
})
