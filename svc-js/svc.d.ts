/**
 * Reports the errors of a page, a Node program or a React Native application to the ingestion service.
 *
 *     import * as svc from "svc-js";
 *
 *     svc.init({ token: "svc_pk_...", release: "shop@1.4.2+318", ingestUrl: "https://errors.example" });
 *
 * From then on uncaught errors are reported. No function throws, and before `init` none has an effect.
 */

export interface Options {
  /** The project's token; without one nothing is sent. In Node by default SVC_TOKEN. */
  token?: string;
  /** `<app-name>@<version>+<build>`, such as `shop@1.4.2+318`; missing parts are `app`, `0.0.0` and `0`. */
  release?: string;
  /** The address of the edge, by default http://127.0.0.1:8080; in Node SVC_INGEST_URL. */
  ingestUrl?: string;
  /** By default `prod`. */
  environment?: string;
  /** Whether `linkBy` of a user is used, of which only hashes are kept. By default false. */
  identity?: boolean;
  capture?: Capture;
  /** Whether `track` leaves breadcrumbs. By default true. */
  trackAutoBreadcrumb?: boolean;
  /** Beginnings of files, as in frames, or of their URLs, that are the application's code. */
  inAppInclude?: string[];
  /** Those that aren't. By default `node_modules`, the runtime and browser extensions. */
  inAppExclude?: string[];
  /** By default, and at most, 100. */
  breadcrumbCapacity?: number;
  /** Where events wait. `indexeddb`: those that a page can't send are sent by the next one. */
  queue?: "memory" | "indexeddb";
  /** Changes an event or returns null, which drops it. If it throws, the event is dropped. */
  beforeSend?: (event: Event) => Event | null;
}

/** What is captured automatically. */
export interface Capture {
  /** Errors that nothing handles. By default true. */
  errors?: boolean;
  /** A breadcrumb of each fetch and XMLHttpRequest. By default false. */
  network?: boolean;
  /** A breadcrumb when the application comes to the foreground or leaves it. By default false. */
  sessions?: boolean;
  /** A breadcrumb of each route change. By default true. */
  navigation?: boolean;
  /** A breadcrumb of each message in the console. By default false. */
  console?: boolean;
}

export interface User {
  id?: string;
  name?: string;
  anonymous?: boolean;
  /** Values that link a person's events, such as `email`. With `identity` their hashes are sent. */
  linkBy?: Record<string, string>;
}

export type BreadcrumbType = "custom" | "log" | "nav" | "net" | "track" | "user";

/** Other fields become data. */
export interface BreadcrumbInput {
  message?: string;
  type?: BreadcrumbType;
  level?: string;
  data?: Record<string, unknown>;
  [field: string]: unknown;
}

export interface Breadcrumb {
  timestamp: string;
  type: BreadcrumbType;
  message?: string;
  level?: string;
  data: Record<string, unknown>;
}

export interface Frame {
  function?: string;
  file: string;
  line: number;
  column?: number;
  inApp: boolean;
  absolutePath?: string;
}

export interface ReportedError {
  type: string;
  message: string;
  /** The most recent call first. */
  stack: Frame[];
  cause?: ReportedError;
}

export interface Event {
  id: string;
  timestamp: string;
  kind: "error";
  platform: "javascript";
  release: string;
  environment: string;
  device: { os: "ios" | "android" | "web" | "other"; osVersion: string; model?: string; locale?: string };
  app: { version: string; build: string; framework?: { name: string; version: string } };
  user?: { id?: string; name?: string; anonymous?: boolean; linkHashes?: Record<string, string> };
  tags: Record<string, string>;
  breadcrumbs?: { timestamp: string; type: string; data: Record<string, unknown> }[];
  fingerprint?: string[];
  error: ReportedError;
}

/** For one event; they override those of the scope. */
export interface CaptureOptions {
  tags?: Record<string, string | null>;
  user?: User;
  /** Suggests a grouping. */
  fingerprint?: string | string[];
}

export declare const VERSION: string;

/** Starts reporting. A second call replaces the first and starts with an empty scope. */
export declare function init(options?: Options): void;

/** Reports a handled error, or any value, with its causes. The event's id, or null if nothing is sent. */
export declare function captureException(error: unknown, options?: CaptureOptions): string | null;

/** Sets the user of later events; null clears it. */
export declare function setUser(user: User | null): void;

/** Sets a tag of later events; null removes it. At most 50 keys of 64 characters, values are cut to 200. */
export declare function setTag(key: string, value: string | null): void;
export declare function setTags(tags: Record<string, string | null>): void;
export declare function clearTags(): void;

/** Adds a breadcrumb to later events. A text is its message. */
export declare function addBreadcrumb(crumb: BreadcrumbInput | string): void;

/** The breadcrumbs of the next event, oldest first. */
export declare function getBreadcrumbs(): Breadcrumb[];
export declare function clearBreadcrumbs(): void;

/** Records an event of the application as a breadcrumb. */
export declare function track(name: string, data?: Record<string, unknown>): void;

/** Sends what waits; true if all outcomes are known within `timeoutMs`, by default 5000. */
export declare function flush(timeoutMs?: number): Promise<boolean>;

/** Flushes within `timeoutMs`, by default 2000, and undoes `init`. */
export declare function close(timeoutMs?: number): Promise<boolean>;
