import { user } from '../page/session.ts'
import { groupsFor } from './titles.ts'

/** The path of what is shown at `path`. The console begins with the first view that the user may open. */
export function pathShown(path: string): string {
  if (path.replace(/\/$/, '') !== '/console') return path
  const [, views = []] = groupsFor(user.value?.permissions ?? [])[0] ?? []
  const [view = ''] = views[0] ?? []
  return view === '' ? '/console' : `/console/${view}`
}
