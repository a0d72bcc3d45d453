// Starts Scalar without anything from other servers: no fonts, proxy, telemetry, or assistant. The credential that a reader enters
// stays in the memory of the tab, and requests go to this server only.
'use strict';

Scalar.createApiReference('#reference', {
  url: '/docs/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  proxyUrl: '',
  externalUrls: { dashboardUrl: location.origin, registryUrl: location.origin, proxyUrl: '', apiBaseUrl: location.origin },
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  documentDownloadType: 'none',
  authentication: { preferredSecurityScheme: 'bearer' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
});

// The buttons that copy a link or an example have only an icon.
new MutationObserver(() => {
  for (const button of document.querySelectorAll('#reference button:not([aria-label])')) {
    if (!button.textContent.trim() && !button.title) button.setAttribute('aria-label', 'Copy');
  }
}).observe(document.getElementById('reference'), { childList: true, subtree: true });
