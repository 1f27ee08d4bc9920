/** A page for people: one document, one script, one style sheet. */
export interface WebPage {
  /** Its title until its script sets a better one. */
  title: string
  /** The file in which its script begins. */
  entry: string
}

/** All pages, by the name of their document. Each needs a route in `bridge-https/routes/page-routes.ts`. */
export const pages = {
  'on-air': { title: 'On air', entry: 'on-air/main.tsx' },
  console: { title: 'Console', entry: 'console/main.tsx' },
} satisfies Record<string, WebPage>
