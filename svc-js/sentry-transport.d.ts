/**
 * Sends the errors of `@sentry/browser`, `@sentry/node` and `@sentry/react-native` to the ingestion service.
 *
 *     import { svcTransport } from "svc-js/sentry-transport";
 *
 *     Sentry.init({ dsn: "https://svc_pk_...@errors.example/1", transport: svcTransport });
 */

export declare function svcTransport(options: { url: string }): {
  send(envelope: any): Promise<{}>;
  flush(timeoutMs?: number): Promise<boolean>;
};
