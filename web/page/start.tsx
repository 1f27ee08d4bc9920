import { render, type VNode } from 'preact'
import { linksTo } from './location.ts'
import { resume } from './session.ts'

/** Shows a page, and logs in again who was logged in. `isOurs`: whether the page itself shows a path. */
export function startPage(page: VNode, isOurs: (path: string) => boolean): void {
  const root = document.getElementById('page')
  if (!root) return
  root.replaceChildren() // removes the text that stands there until the script arrives
  render(page, root)
  root.addEventListener('click', linksTo(isOurs))
  void resume()
}
