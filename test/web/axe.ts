import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Axe finds nothing, and nothing scrolls sideways, on narrow and wide screens, light and dark. */
export async function findNothing(t: Test, page: Page, what: string): Promise<void> {
  await page.evaluate(axe)
  for (const width of [360, 1920]) {
    await page.setViewportSize({ width, height: 900 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const violations = await page.evaluate<unknown[]>(
        'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))',
      )
      t.same(violations, [], `${what}, ${width} px, ${colorScheme}`)
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      t.equal(await page.evaluate(overflow), 0, `${what}, ${width} px: no scrolling sideways`)
      if (process.env.SHOTS)
        await page.screenshot({ path: `${process.env.SHOTS}/${what}-${width}-${colorScheme}.png` })
    }
  }
}
