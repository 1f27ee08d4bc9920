/** Two invented pages of stations, one light and one dark, each with elements for these livestreams. */
export function stationPages(hub: string, light: readonly string[], dark: readonly string[]): string {
  const elements = (livestreams: readonly string[]) =>
    livestreams.map((id) => `<now-playing covers hub="${hub}" livestream="${id}"></now-playing>`).join('')
  return `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>Stations</title>
  <script type="module" crossorigin src="${hub}/embed/v1.js"></script>
  <style>
    body { display: flex; margin: 0; font: 18px/1.4 sans-serif }
    section { flex: 1; min-height: 100vh; padding: 1.5em 2em; box-sizing: border-box }
    h1 { margin: 0 0 1em; font-size: 1.3em }
    now-playing { margin-block: 1.2em }
    .light { background: #fff; color: #1c2733 }
    .light now-playing { --now-playing-soft: #56636f; --now-playing-announcement: #b3261e }
    .dark { background: #14171c; color: #f1ece2; font-family: serif }
    .dark now-playing { --now-playing-soft: #b3ab9c; --now-playing-announcement: #ffb4a9; --now-playing-next: 'Gleich: ' }
    .dark now-playing::part(cover) { border-radius: 50% }
  </style>
  <section class="light"><h1>Listen</h1>${elements(light)}</section>
  <section class="dark"><h1>Jetzt im Programm</h1>${elements(dark)}</section>
</html>
`
}
