/** The text, where `web/bundle.ts` puts it into a script. */
declare module '*.css' {
  const text: string
  export default text
}
