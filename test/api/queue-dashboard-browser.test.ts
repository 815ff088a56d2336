import { expect, onTestFinished, test } from "vitest";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { openBrowser, visitor } from "../harness/clients/browser.ts";
import { withoutChromium } from "../harness/clients/chromium.ts";
import { Service } from "../harness/processes/service.ts";

test.skipIf(withoutChromium !== "")(
  `a browser shows the searches, and its policy keeps it from nothing but a font of another site${withoutChromium}`,
  async () => {
    const service = await Service.start({ workers: 0, end: onTestFinished });
    const queue = createQueue({ url: service.redisServer.url }, { skipMetasUpdate: true });
    await queue.add(
      "search",
      { requestId: "req_1", organizationId: "org_1", query: { keyword: "tea" } },
      { jobId: "req_1" },
    );
    await queue.close();
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const opsUrl = service.apis[0]?.opsUrl ?? "";
    const { page, complaints } = await visitor(browser, [opsUrl]);
    await page.goto(`${opsUrl}/queues/queue/searches?status=waiting`);
    await page.getByText("req_1").first().waitFor();
    expect(complaints.filter((text) => !text.includes("fonts.googleapis.com"))).toEqual([]);
  },
);
